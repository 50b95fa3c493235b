//! Real files to play with.

use std::fs;
use std::path::PathBuf;

use client::{Answer, DataClass, Failure, Label};
use runner::{Access, Folder, Folders, Watch, run};
use serde_json::{Value, json};

/// A public folder with a secret one in it, and something outside.
pub(crate) struct Files {
    pub(crate) root: tempfile::TempDir,
    pub(crate) folders: Folders,
}

pub(crate) const SECRET: Label = Label {
    class: DataClass::Secret,
    untrusted: false,
};

impl Files {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let open = root.path().join("open");
        fs::create_dir_all(open.join("secret")).unwrap();
        fs::create_dir(root.path().join("open-outside")).unwrap();
        fs::write(root.path().join("open-outside/o.txt"), "outside").unwrap();
        fs::write(open.join("a.txt"), "a text").unwrap();
        fs::write(open.join("secret/k.txt"), "a key").unwrap();
        let folders = Folders::open(&[
            Folder {
                path: open.clone(),
                label: Label::BOTTOM,
                access: Access::Write,
            },
            Folder {
                path: open.join("secret"),
                label: SECRET,
                access: Access::Write,
            },
        ]);
        Self {
            root,
            folders: folders.unwrap(),
        }
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.root
            .path()
            .canonicalize()
            .unwrap()
            .join("open")
            .join(below)
    }

    pub(crate) fn run(&self, tool: &str, below: &str) -> Result<Answer, Failure> {
        self.run_path(tool, self.path(below).to_str().unwrap())
    }

    pub(crate) fn run_path(&self, tool: &str, path: &str) -> Result<Answer, Failure> {
        run(
            &self.folders,
            tool,
            &serde_json::json!({ "path": path }).to_string(),
            &Watch::default(),
        )
    }

    pub(crate) fn write(&self, below: &str, content: &str) -> Result<Answer, Failure> {
        let arguments = serde_json::json!({ "path": self.path(below), "content": content });
        run(
            &self.folders,
            "write_file",
            &arguments.to_string(),
            &Watch::default(),
        )
    }

    #[track_caller]
    pub(crate) fn fails(&self, tool: &str, below: &str, why: &str) {
        let Failure(text) = self.run(tool, below).expect_err("a failure");
        assert!(text.contains(why), "{text}");
    }

    /// Any tool with any arguments.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Result<Answer, Failure> {
        run(
            &self.folders,
            tool,
            &arguments.to_string(),
            &Watch::default(),
        )
    }

    pub(crate) fn edit(&self, below: &str, old: &str, new: &str) -> Result<Answer, Failure> {
        self.call(
            "edit_file",
            &json!({"path": self.path(below), "old": old, "new": new}),
        )
    }

    /// Every tool on one path.
    pub(crate) fn all(&self, path: &str) -> [Result<Answer, Failure>; 5] {
        [
            self.call("read_file", &json!({"path": path})),
            self.call("list_dir", &json!({"path": path})),
            self.call(
                "search_files",
                &json!({"path": path, "pattern": "e", "glob": "*"}),
            ),
            self.call("write_file", &json!({"path": path, "content": "changed"})),
            self.call(
                "edit_file",
                &json!({"path": path, "old": "e", "new": "changed", "all": true}),
            ),
        ]
    }
}

/// Ends a thread that runs beside a test, also when the test fails.
pub(crate) struct Done<'a>(pub(crate) &'a std::sync::atomic::AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}
