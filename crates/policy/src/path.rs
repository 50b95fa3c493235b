//! Paths as text. A path is judged only if every reader resolves it the same way: absolute, without
//! `.`, `..`, empty parts or NUL. Links are the runner's business.

/// Whether no part is empty, `.` or `..` (a leading `/` is fine) and there is no NUL.
pub(crate) fn is_clean(path: &str) -> bool {
    let relative = path.strip_prefix('/').unwrap_or(path);
    relative
        .split('/')
        .all(|part| !matches!(part, "" | "." | ".."))
        && !path.contains('\0')
}

/// Whether the path is absolute and clean; `/` itself is.
pub(crate) fn is_clean_absolute(path: &str) -> bool {
    path == "/" || (path.starts_with('/') && is_clean(path))
}

/// Whether a clean absolute path is the clean absolute folder or lies below it.
pub(crate) fn is_under(path: &str, folder: &str) -> bool {
    match path.strip_prefix(folder) {
        Some(rest) => rest.is_empty() || rest.starts_with('/') || folder == "/",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_that_all_resolve_alike_is_clean() {
        for clean in ["/", "/a", "/a/b.c", "/a/..b", "/a/...", "/a b"] {
            assert!(is_clean_absolute(clean), "{clean}");
        }
        for unclean in [
            "", "a", "//", "//a", "/a/", "/a//b", "/./a", "/a/.", "/..", "/a/../b", "/a\0",
        ] {
            assert!(!is_clean_absolute(unclean), "{unclean}");
        }
    }

    #[test]
    fn a_folder_and_what_is_below_it_is_under_it() {
        for (path, folder, expected) in [
            ("/srv/docs/a", "/srv/docs", true),
            ("/srv/docs", "/srv/docs", true),
            ("/srv/docs2", "/srv/docs", false),
            ("/srv", "/srv/docs", false),
            ("/x", "/", true),
            ("/", "/", true),
        ] {
            assert_eq!(is_under(path, folder), expected, "{path} {folder}");
        }
    }
}
