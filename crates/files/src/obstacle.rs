//! Describes why the system refused a path.
//!
//! The system says "Not a directory (os error 20)" and does not name the component of the path that is not a
//! directory. All errors about paths that the user typed are described here.

use rustix::io::Errno;
use std::io;
use std::path::Path;

/// Returns the reason why the system refused `path` with `error`. The reason names the component of the path
/// that caused the error, if there is one.
pub fn obstacle(path: &Path, error: &io::Error) -> String {
    let refused = Errno::from_io_error(error);
    // Drop a slash at the end, because it would ask for a folder.
    let path = path.components().as_path();
    if matches!(refused, Some(Errno::NOTDIR | Errno::EXIST | Errno::ISDIR))
        && let Some(part) = outermost(path, |part| part.exists() && !part.is_dir())
    {
        return match part == path {
            true => "it is no folder".to_owned(),
            false => format!("{} is no folder", part.display()),
        };
    }
    if refused == Some(Errno::NOENT)
        && let Some(folder) = path.parent().and_then(|folder| outermost(folder, |part| !part.exists()))
    {
        return format!("there is no folder {}", folder.display());
    }
    let words = match refused {
        Some(Errno::EXIST | Errno::LOOP | Errno::NOENT) if path.is_symlink() => {
            "it is a link that leads nowhere"
        }
        Some(Errno::LOOP) => "its links lead in a circle",
        Some(Errno::NAMETOOLONG) => "its name is too long",
        Some(Errno::ISDIR) => "it is a folder",
        Some(Errno::ACCESS | Errno::PERM) => "permission denied",
        Some(Errno::ROFS) => "its file system is read-only",
        Some(Errno::NOSPC) => "the disk is full",
        Some(Errno::FBIG) => "it would be longer than a file may be here (ulimit -f, or the file system)",
        Some(Errno::NOENT) => "there is no such file",
        _ => return system_words(error),
    };
    words.to_owned()
}

/// Returns the outermost ancestor of `path`, or `path` itself, for which `is_so` is true.
fn outermost(path: &Path, is_so: impl Fn(&Path) -> bool) -> Option<&Path> {
    // Leave out the empty path, which is the last ancestor of a relative path.
    let parts: Vec<&Path> = path.ancestors().filter(|part| !part.as_os_str().is_empty()).collect();
    parts.into_iter().rev().find(|part| is_so(part))
}

/// Returns the system's description of the error, without its error number.
fn system_words(error: &io::Error) -> String {
    let said = error.to_string();
    match (said.rfind(" (os error "), said.chars().next()) {
        (Some(end), Some(first)) => {
            format!("{}{}", first.to_lowercase(), &said[first.len_utf8()..end])
        }
        _ => said,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;

    /// The reason names the component of the path that caused the error, and no error number.
    #[test]
    fn the_obstacle_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "x").unwrap();
        symlink("loop", at("loop")).unwrap();
        symlink("nowhere", at("link")).unwrap();
        let create = |name: &str| File::create(at(name)).map(drop);
        let make = |name: &str| fs::create_dir_all(at(name));
        let open = |name: &str| File::open(at(name)).map(drop);
        let long = "y".repeat(300);
        let cases: [(&str, io::Result<()>, &str); 11] = [
            ("file/a", create("file/a"), "/file is no folder"),
            ("file/a/b", make("file/a/b"), "/file is no folder"),
            ("file", make("file"), "it is no folder"),
            ("file/", create("file/"), "it is no folder"),
            ("none/a/b", create("none/a/b"), "/none"),
            ("loop", open("loop"), "it is a link that leads nowhere"),
            ("loop/a", open("loop/a"), "its links lead in a circle"),
            ("link", open("link"), "it is a link that leads nowhere"),
            (&long, create(&long), "its name is too long"),
            (".", create("."), "it is a folder"),
            ("none", open("none"), "there is no such file"),
        ];
        for (name, outcome, words) in cases {
            let said = obstacle(&at(name), &outcome.unwrap_err());
            assert!(said.contains(words) && !said.contains("os error"), "{name}: {said}");
        }
        let system = |error: Errno| obstacle(&at("file"), &error.into());
        assert_eq!(system(Errno::ACCESS), "permission denied");
        assert_eq!(system(Errno::NOSPC), "the disk is full");
        assert_eq!(system(Errno::IO), "input/output error");
        assert_eq!(obstacle(&at("file"), &io::Error::other("Own words")), "Own words");
    }
}
