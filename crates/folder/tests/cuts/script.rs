//! Operations as text, on a folder, and the contents of a folder as text.
//!
//! A file consists of blocks of 4,096 equal bytes, and a cut tears writes at blocks. `write f 1 2 7` writes two blocks
//! of the byte 7 at block 1. The contents `d/ d/f=07` are a folder and a file of two blocks in it, the first of zeros.
//! `.` is the folder itself.

use fulgurite_folder::{Folder, FolderError, Kind, Onto, ROOT};

pub(crate) const BLOCK: u64 = 4_096;

/// Returns the inode of a path.
pub(crate) fn inode(folder: &Folder, path: &str) -> Result<u64, FolderError> {
    path.split('/').filter(|name| *name != ".").try_fold(ROOT, |at, name| folder.lookup(at, name.as_bytes()))
}

/// Returns the inode of the folder of a path, and the last name.
pub(crate) fn place<'a>(folder: &Folder, path: &'a str) -> Result<(u64, &'a [u8]), FolderError> {
    let (parent, name) = path.rsplit_once('/').unwrap_or((".", path));
    Ok((inode(folder, parent)?, name.as_bytes()))
}

/// Performs one operation.
pub(crate) fn step(folder: &mut Folder, operation: &str) -> Result<(), FolderError> {
    let words: Vec<&str> = operation.split_whitespace().collect();
    let number = |at: usize| words[at].parse::<u64>().unwrap();
    match words[..] {
        ["create", path] => {
            let (parent, name) = place(folder, path)?;
            folder.create(parent, name, 0o644, 0).map(drop)
        }
        ["mkdir", path] => {
            let (parent, name) = place(folder, path)?;
            folder.mkdir(parent, name, 0o755, 0).map(drop)
        }
        ["link", from, to] => {
            let (parent, name) = place(folder, to)?;
            folder.link(inode(folder, from)?, parent, name, 0)
        }
        ["unlink", path] => {
            let (parent, name) = place(folder, path)?;
            folder.unlink(parent, name, 0)
        }
        ["rmdir", path] => {
            let (parent, name) = place(folder, path)?;
            folder.rmdir(parent, name, 0)
        }
        ["rename", from, to] => folder.rename(place(folder, from)?, place(folder, to)?, Onto::Replace, 0),
        ["exchange", from, to] => folder.rename(place(folder, from)?, place(folder, to)?, Onto::Exchange, 0),
        ["write", path, _, _, value] => {
            let data = vec![value.parse().unwrap(); (number(3) * BLOCK) as usize];
            folder.write(inode(folder, path)?, number(2) * BLOCK, &data, 0)
        }
        ["zero", path, _, _] => folder.zero(inode(folder, path)?, number(2) * BLOCK, number(3) * BLOCK, 0),
        ["truncate", path, _] => folder.truncate(inode(folder, path)?, number(2) * BLOCK, 0),
        ["mode", path, mode] => folder.set_mode(inode(folder, path)?, u32::from_str_radix(mode, 8).unwrap()),
        ["open", path] => folder.open(inode(folder, path)?),
        ["sync", path] => folder.sync(inode(folder, path)?),
        ["sync-all"] => {
            folder.sync_all();
            Ok(())
        }
        _ => panic!("no operation: {operation}"),
    }
}

/// Performs operations that are separated by semicolons.
pub(crate) fn run(folder: &mut Folder, operations: &str) {
    for operation in operations.split(';').filter(|operation| !operation.trim().is_empty()) {
        step(folder, operation).unwrap_or_else(|error| panic!("{operation}: {error}"));
    }
}

/// Returns the contents, and checks that every inode has as many names as it says.
pub(crate) fn contents(folder: &Folder) -> String {
    let mut lines = Vec::new();
    let mut links = std::collections::BTreeMap::new();
    walk(folder, ROOT, "", &mut lines, &mut links);
    for (inode, count) in links {
        assert_eq!(folder.attributes(inode).unwrap().links, count, "links of {inode}");
    }
    lines.join(" ")
}

/// Checks that a file which gains bytes gains zeros.
pub(crate) fn check_ends(folder: &mut Folder, at: u64) {
    let inodes: Vec<u64> = folder.entries(at).unwrap().map(|(_, inode)| inode).collect();
    for inode in inodes {
        let attributes = folder.attributes(inode).unwrap();
        if attributes.kind == Kind::Folder {
            check_ends(folder, inode);
            continue;
        }
        folder.truncate(inode, attributes.size + 4 * BLOCK, 0).unwrap();
        let mut bytes = Vec::new();
        folder.read(inode, attributes.size, usize::MAX, &mut bytes).unwrap();
        assert!(bytes.iter().all(|byte| *byte == 0), "bytes behind the end of {inode}");
    }
}

fn walk(
    folder: &Folder,
    at: u64,
    path: &str,
    lines: &mut Vec<String>,
    links: &mut std::collections::BTreeMap<u64, u32>,
) {
    for (name, inode) in folder.entries(at).unwrap() {
        let path = format!("{path}{}", String::from_utf8_lossy(name));
        let attributes = folder.attributes(inode).unwrap();
        *links.entry(inode).or_insert(0) += 1;
        if attributes.kind == Kind::Folder {
            assert_eq!(links[&inode], 1, "{path} is a second name");
            lines.push(format!("{path}/"));
            walk(folder, inode, &format!("{path}/"), lines, links);
            continue;
        }
        let mut bytes = Vec::new();
        folder.read(inode, 0, usize::MAX, &mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, attributes.size);
        let blocks: String = bytes
            .chunks(BLOCK as usize)
            .map(|block| {
                assert!(block.iter().all(|byte| *byte == block[0]), "{path} is torn inside a block");
                char::from(b'0' + block[0])
            })
            .collect();
        let mode = if attributes.mode == 0o644 { String::new() } else { format!(":{:o}", attributes.mode) };
        lines.push(format!("{path}={blocks}{mode}"));
    }
}
