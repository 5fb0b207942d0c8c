//! Checks the width of source lines, because rustfmt leaves comments and long strings unchanged.

use crate::root;
use anyhow::{Result, ensure};
use std::fs;
use std::path::Path;

/// The maximum width of a line, in characters.
const COLUMNS: usize = 120;

/// Refuses lines in the Rust sources that are wider than the maximum.
pub(crate) fn check() -> Result<()> {
    let mut wide = Vec::new();
    for folder in ["crates", "xtask", "fuzz", "benches"] {
        look(&root().join(folder), &mut wide)?;
    }
    ensure!(wide.is_empty(), "lines of more than {COLUMNS} columns:\n{}", wide.join("\n"));
    Ok(())
}

fn look(folder: &Path, wide: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                look(&path, wide)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)?;
            let lines = (1..).zip(text.lines()).filter(|(_, line)| line.chars().count() > COLUMNS);
            wide.extend(lines.map(|(number, _)| format!("{}:{number}", path.display())));
        }
    }
    Ok(())
}
