use client::DataClass;
use runner::{Access, Folder, Folders};

#[test]
fn a_folder_states_its_class_and_its_trust_or_counts_as_internal() {
    for (text, path, class, untrusted) in [
        ("/a", "/a", DataClass::Internal, false),
        ("/a:public", "/a", DataClass::Public, false),
        ("/a:secret:untrusted", "/a", DataClass::Secret, true),
        ("/a:b:confidential", "/a:b", DataClass::Confidential, false),
        ("/a:b", "/a:b", DataClass::Internal, false),
    ] {
        let folder: Folder = text.parse().unwrap();
        assert_eq!(folder.path.to_str(), Some(path), "{text}");
        assert_eq!(
            (folder.label.class, folder.label.untrusted),
            (class, untrusted),
            "{text}"
        );
    }
    for text in ["", ":public", "/a:untrusted", "/a:top:untrusted"] {
        assert!(text.parse::<Folder>().is_err(), "{text:?}");
    }
}

#[test]
fn a_folder_that_is_missing_or_named_twice_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let folder = |path: &str| Folder {
        path: root.path().join(path),
        label: client::Label::BOTTOM,
        access: Access::Read,
    };
    let missing = Folders::open(&[folder("missing")])
        .err()
        .unwrap()
        .to_string();
    assert!(missing.contains("missing cannot be opened"), "{missing}");
    let twice = Folders::open(&[folder("."), folder("")])
        .err()
        .unwrap()
        .to_string();
    assert!(twice.contains("is named twice"), "{twice}");
}
