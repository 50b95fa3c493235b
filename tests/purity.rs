//! The pure crates stay pure: no dependency beyond those that are listed here, and a `clippy.toml`
//! that forbids clocks, files, sockets and the environment.

#![cfg(test)]

use std::collections::BTreeSet;
use std::path::Path;

fn manifest(path: &str) -> toml::Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.parse()
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn dependencies(name: &str) -> BTreeSet<String> {
    let manifest = manifest(&format!("crates/{name}/Cargo.toml"));
    let table = |key: &str| manifest.get(key).and_then(|t| t.as_table()).cloned();
    assert!(
        table("build-dependencies").is_none(),
        "{name} runs code at build time"
    );
    assert!(
        table("target").is_none(),
        "{name} has dependencies by target"
    );
    table("dependencies")
        .unwrap_or_default()
        .keys()
        .cloned()
        .collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn the_pure_crates_have_no_other_dependencies() {
    let proto = [
        "bytes",
        "serde",
        "serde_json",
        "serde_path_to_error",
        "thiserror",
    ];
    // Optional: the codec for roles, the schemas for docs/.
    let optional = ["tokio-util", "schemars"];
    assert_eq!(
        dependencies("proto"),
        set(&[&proto[..], &optional[..]].concat())
    );
    assert_eq!(
        dependencies("policy"),
        set(&[
            "proto",
            "serde_json",
            "thiserror",
            "toml",
            "globset",
            "regex",
            "url",
            "humantime",
            "sha2",
        ])
    );
    assert_eq!(
        dependencies("engine"),
        set(&["proto", "policy", "bytes", "serde", "serde_json", "sha2"])
    );
}

#[test]
fn the_pure_crates_forbid_clocks_files_sockets_and_the_environment() {
    for name in ["proto", "policy", "engine"] {
        let clippy = manifest(&format!("crates/{name}/clippy.toml"));
        let banned: BTreeSet<String> = ["disallowed-methods", "disallowed-types"]
            .iter()
            .filter_map(|key| clippy.get(*key)?.as_array())
            .flatten()
            .filter_map(|entry| Some(entry.get("path")?.as_str()?.to_owned()))
            .collect();
        for path in [
            "std::time::Instant::now",
            "std::time::SystemTime::now",
            "std::thread::spawn",
            "std::env::var",
            "std::fs::read",
            "std::fs::File",
            "std::net::TcpStream",
            "std::os::unix::net::UnixStream",
            "std::collections::HashMap",
        ] {
            assert!(
                banned.contains(path),
                "crates/{name}/clippy.toml does not forbid {path}"
            );
        }
    }
}

#[test]
fn the_daemon_links_no_mcp_http_or_tls() {
    let lock = manifest("Cargo.lock");
    let packages = lock
        .get("package")
        .and_then(|p| p.as_array())
        .cloned()
        .unwrap_or_default();
    let depends = |name: &str| -> Vec<String> {
        packages
            .iter()
            .filter(|p| p.get("name").and_then(|n| n.as_str()) == Some(name))
            .filter_map(|p| p.get("dependencies")?.as_array().cloned())
            .flatten()
            .filter_map(|d| Some(d.as_str()?.split(' ').next()?.to_owned()))
            .collect()
    };
    let mut seen = BTreeSet::new();
    let mut next = vec!["broker".to_owned()];
    while let Some(name) = next.pop() {
        if seen.insert(name.clone()) {
            next.extend(depends(&name));
        }
    }
    assert!(
        seen.contains("engine") && seen.len() > 20,
        "the walk found the daemon's packages"
    );
    for banned in [
        "rmcp",
        "hyper",
        "reqwest",
        "rustls",
        "native-tls",
        "openssl",
        "h2",
        "ureq",
    ] {
        assert!(!seen.contains(banned), "rolebrokerd links {banned}");
    }
}
