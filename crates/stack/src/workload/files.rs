//! Finds the files that the name of a trace stands for: one file, all files of a folder, those that a pattern
//! fits, or those of a list.
//!
//! The name of an existing file always stands for this file, even if it has commas, stars or question marks.

use crate::StackError;
use fulgurite_files::obstacle;
use fulgurite_files::output::is_standard;
use fulgurite_workload::trace::{FILES_AT_MOST, Join};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the files of a trace; a single one, which may not exist, unless `text` stands for several. A list is
/// split at its commas only if `join` tells how the files are one trace.
pub fn files_of(text: &str, join: Option<Join>) -> Result<Vec<PathBuf>, StackError> {
    let path = Path::new(text);
    if is_standard(path) || path.exists() && !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let files = match one(text)? {
        Some(files) => files,
        None if join.is_some() && text.contains(',') => listed(text)?,
        None => return Ok(vec![path.to_owned()]),
    };
    if files.len() > FILES_AT_MOST {
        return Err(StackError::request(format!(
            "{text} stands for {} files; accepted: at most {FILES_AT_MOST}",
            files.len()
        )));
    }
    Ok(files)
}

/// Returns the files of an item of a list; `None` if there are none of that name.
fn one(text: &str) -> Result<Option<Vec<PathBuf>>, StackError> {
    let path = Path::new(text);
    if path.is_dir() {
        return in_folder(text, path, "*").map(Some);
    }
    if path.exists() {
        return Ok(Some(vec![path.to_owned()]));
    }
    let pattern = path.file_name().and_then(|name| name.to_str()).filter(|name| name.contains(['*', '?']));
    let folder = path.parent().map_or(Path::new(""), |parent| parent);
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    match pattern {
        Some(pattern) if folder.is_dir() => in_folder(text, folder, pattern).map(Some),
        _ => Ok(None),
    }
}

/// Returns the files of a folder whose names fit a pattern, in the order of their names. Hidden files and folders
/// inside are left out.
fn in_folder(text: &str, folder: &Path, pattern: &str) -> Result<Vec<PathBuf>, StackError> {
    let cannot = |error: std::io::Error| {
        StackError::request(format!("{text} cannot be read: {}", obstacle(folder, &error)))
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let name = entry.file_name();
        let fits = name.to_str().is_some_and(|name| !name.starts_with('.') && fits(name, pattern));
        if fits && entry.path().is_file() {
            // A path is shown as the user would type it.
            files.push(if folder == Path::new(".") { PathBuf::from(name) } else { entry.path() });
        }
    }
    if files.is_empty() {
        return Err(StackError::request(format!(
            "{text} stands for no file; accepted: a trace, a folder with traces, or a pattern like 'traces/*.csv'"
        )));
    }
    files.sort_unstable();
    Ok(files)
}

/// Returns the files of a list. The name of a file may have commas, so the longest name that exists counts.
fn listed(text: &str) -> Result<Vec<PathBuf>, StackError> {
    let items: Vec<&str> = text.split(',').collect();
    let (mut files, mut at) = (Vec::new(), 0);
    while at < items.len() {
        let name = |end: usize| items[at..end].join(",");
        let mut found = None;
        for end in (at + 1..=items.len()).rev() {
            if let Some(of_item) = one(&name(end))? {
                found = Some((of_item, end));
                break;
            }
        }
        let Some((of_item, end)) = found else {
            return Err(StackError::request(format!(
                "there is no file {} of the list {text}; accepted: names of traces, separated by commas",
                items[at]
            )));
        };
        files.extend(of_item);
        at = end;
    }
    Ok(files)
}

/// Returns whether a name fits a pattern, in which `*` stands for any letters and `?` for one.
fn fits(name: &str, pattern: &str) -> bool {
    let (name, pattern): (Vec<char>, Vec<char>) = (name.chars().collect(), pattern.chars().collect());
    // Of the last star, the place behind it in the pattern, and the end of the letters that it stands for.
    let (mut at, mut in_pattern, mut star) = (0, 0, None);
    while at < name.len() {
        match pattern.get(in_pattern) {
            Some('*') => {
                in_pattern += 1;
                star = Some((in_pattern, at));
            }
            Some(letter) if *letter == '?' || *letter == name[at] => {
                (at, in_pattern) = (at + 1, in_pattern + 1)
            }
            _ => {
                let Some((behind, end)) = star else { return false };
                (at, in_pattern, star) = (end + 1, behind, Some((behind, end + 1)));
            }
        }
    }
    pattern[in_pattern..].iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: a star stands for any letters, also none, and a question mark for exactly one.
    #[test]
    fn patterns_fit_as_in_a_shell() {
        for (name, pattern, expected) in [
            ("a.csv", "*.csv", true),
            (".csv", "*.csv", true),
            ("a.csv.gz", "*.csv", false),
            ("a.csv.gz", "*.csv*", true),
            ("sda.blktrace.0", "sda.blktrace.?", true),
            ("sda.blktrace.10", "sda.blktrace.?", false),
            ("aXbXc", "a*X?", true),
            ("ab", "a*b*", true),
            ("", "*", true),
            ("a", "", false),
        ] {
            assert_eq!(fits(name, pattern), expected, "{name} {pattern}");
        }
    }
}
