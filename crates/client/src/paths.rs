//! Where the sockets are, if nobody says otherwise.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

const SYSTEM: &str = "/run/rolebroker";
/// Below `$XDG_STATE_HOME` or `~/.local/state`: where an ordinary user's daemon has them without a login's folder.
const BESIDE_STATE: &str = "rolebroker-sockets";

/// The folders that may have the sockets, in the order in which they are looked through: `$ROLEBROKER_RUNTIME_DIR`
/// alone, if it is set; else `/run/rolebroker`, `$XDG_RUNTIME_DIR/rolebroker`, and, for who has no login that sets
/// it, `~/.local/state/rolebroker-sockets`. Never empty.
pub fn runtime_dirs() -> Vec<PathBuf> {
    dirs_of(|name| std::env::var_os(name))
}

/// The folder of the sockets: the first of [`runtime_dirs`] that exists. If none does, the login's, else the machine's.
pub fn runtime_dir() -> PathBuf {
    let dirs = runtime_dirs();
    first(&dirs, |dir| dir.exists())
}

/// The socket of a role, `<folder>/<role>.sock`: that of the first of [`runtime_dirs`] that has one, else below
/// [`runtime_dir`].
///
/// ```
/// assert!(client::socket("agent").ends_with("agent.sock"));
/// ```
pub fn socket(role: &str) -> PathBuf {
    let name = format!("{role}.sock");
    let dirs = runtime_dirs();
    let found = dirs
        .iter()
        .map(|dir| dir.join(&name))
        .find(|it| it.exists());
    found.unwrap_or_else(|| first(&dirs, |dir| dir.exists()).join(&name))
}

fn dirs_of(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let stated = |name: &str| {
        let value = variable(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    if let Some(only) = stated("ROLEBROKER_RUNTIME_DIR") {
        return vec![only];
    }
    let login = stated("XDG_RUNTIME_DIR").map(|dir| dir.join("rolebroker"));
    let state = stated("XDG_STATE_HOME").or_else(|| Some(stated("HOME")?.join(".local/state")));
    let beside = state.map(|dir| dir.join(BESIDE_STATE));
    [Some(PathBuf::from(SYSTEM)), login, beside]
        .into_iter()
        .flatten()
        .collect()
}

/// The first that is there; else the login's, if there is one, else the machine's.
fn first(dirs: &[PathBuf], there: impl Fn(&Path) -> bool) -> PathBuf {
    let found = dirs.iter().find(|dir| there(dir));
    let found = found.or_else(|| dirs.iter().rfind(|dir| !dir.ends_with(BESIDE_STATE)));
    let found = found.or_else(|| dirs.first());
    found.cloned().unwrap_or_else(|| PathBuf::from(SYSTEM))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dirs(variables: &[(&str, &str)]) -> Vec<PathBuf> {
        dirs_of(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn a_stated_folder_is_the_only_one() {
        let stated = [
            ("ROLEBROKER_RUNTIME_DIR", "/tmp/rb"),
            ("XDG_RUNTIME_DIR", "/run/user/1"),
        ];
        assert_eq!(dirs(&stated), [Path::new("/tmp/rb")]);
    }

    #[test]
    fn the_machines_daemon_comes_before_ones_own_and_a_login_before_the_home() {
        let all = dirs(&[
            ("ROLEBROKER_RUNTIME_DIR", ""),
            ("XDG_RUNTIME_DIR", "/run/user/1"),
            ("HOME", "/home/ann"),
        ]);
        let expected = [
            "/run/rolebroker",
            "/run/user/1/rolebroker",
            "/home/ann/.local/state/rolebroker-sockets",
        ];
        assert_eq!(all, expected.map(Path::new));
        assert_eq!(first(&all, |dir| dir == all[2]), all[2]);
        assert_eq!(first(&all, |_| true), all[0]);
        assert_eq!(first(&all, |_| false), all[1]);
        let service = dirs(&[("HOME", "/home/bot")]);
        assert_eq!(first(&service, |_| false), service[0]);
        assert_eq!(dirs(&[]), [Path::new("/run/rolebroker")]);
    }
}
