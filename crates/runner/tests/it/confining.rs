//! What the runner itself is held to. A thread can be confined for good, and the rest of the test program not.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::net::{UnixListener, UnixStream};

use client::Label;
use runner::config::Config;
use runner::confine::{confine_runner, missing};
use runner::{Access, Folder};

#[test]
fn the_runner_reaches_its_folders_and_local_sockets_and_nothing_else() {
    let lacking = missing();
    if !lacking.is_empty() {
        eprintln!("skipped: this kernel lacks {lacking:?}");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name);
    for name in ["read", "write", "outside"] {
        fs::create_dir(path(name)).unwrap();
        fs::write(path(name).join("f"), name).unwrap();
    }
    let _listener = UnixListener::bind(path("socket")).unwrap();
    let folder = |name: &str, access| Folder {
        path: path(name),
        label: Label::BOTTOM,
        access,
    };
    let folders = [folder("read", Access::Read), folder("write", Access::Write)];
    // A command in the configuration widens it by what that command may touch, not by where it starts.
    let text =
        "[[command]]\nname = \"c\"\ndescription = \"d\"\nargv = [\"/bin/true\"]\ncwd = \"/\"\n";
    let commands = Config::parse("runner.toml", text).unwrap().commands;
    for commands in [&[], commands.as_slice()] {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(fs::read(path("outside/f")).is_ok(), "before");
                confine_runner(&folders, commands).unwrap();
                assert_eq!(fs::read_to_string(path("read/f")).unwrap(), "read");
                fs::write(path("write/f"), "written").unwrap();
                UnixStream::connect(path("socket")).unwrap();
                let denied = |result: std::io::Result<()>, what: &str| {
                    let kind = result.expect_err(what).kind();
                    assert_eq!(kind, ErrorKind::PermissionDenied, "{what}");
                };
                denied(fs::read(path("outside/f")).map(|_| ()), "read outside");
                denied(fs::read_dir(path("outside")).map(|_| ()), "list outside");
                denied(fs::write(path("outside/new"), ""), "make outside");
                denied(fs::write(path("read/f"), ""), "write where it reads");
                denied(TcpListener::bind("127.0.0.1:0").map(|_| ()), "the internet");
            });
        });
    }
}
