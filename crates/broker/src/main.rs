//! rolebrokerd: the small daemon between the roles. Everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    broker::run(std::env::args_os())
}
