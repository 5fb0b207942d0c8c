//! Who may import whom, and what the simulated core may not touch.
//!
//! A run is a pure function of its description only if nothing below `study` reads a clock, a random
//! source or the environment, or opens a file of its own. So their sources must not name them.

use crate::root;
use anyhow::{Result, bail};
use cargo_metadata::{DependencyKind, MetadataCommand};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What each crate may import, of this workspace. A crate that is not here fails the check.
const LAYERS: &[(&str, &[&str])] = &[
    ("fulgurite-base", &[]),
    ("fulgurite-device", &["fulgurite-base"]),
    ("fulgurite-workload", &["fulgurite-base"]),
    ("fulgurite-ftl", &["fulgurite-base"]),
    ("fulgurite-ssd", &["fulgurite-base", "fulgurite-device", "fulgurite-ftl"]),
    ("fulgurite-uring", &["fulgurite-base", "fulgurite-device"]),
    ("fulgurite-log", &["fulgurite-base", "fulgurite-device", "fulgurite-ftl"]),
    ("fulgurite-pool", &["fulgurite-base", "fulgurite-device"]),
    (
        "fulgurite-stack",
        &[
            "fulgurite-base",
            "fulgurite-device",
            "fulgurite-ftl",
            "fulgurite-log",
            "fulgurite-pool",
            "fulgurite-ssd",
            "fulgurite-uring",
            "fulgurite-workload",
        ],
    ),
    ("fulgurite-study", &["fulgurite-base", "fulgurite-stack", "fulgurite-workload"]),
    ("fulgurite", &["fulgurite-study"]),
    ("xtask", &[]),
];

/// Below `study`; the workload crate opens the trace files that it is given.
const PURE: &[&str] = &["base", "device", "ftl", "ssd", "log", "pool"];
const IMPURE: &[&str] = &[
    "std::time",
    "SystemTime",
    "Instant::now",
    "std::env",
    "std::fs",
    "File::open",
    "getrandom",
    "thread_rng",
    "RandomState",
    "HashMap::new()",
    "HashSet::new()",
];

pub fn check() -> Result<()> {
    let mut wrong = imports()?;
    for name in PURE {
        let folder = root().join("crates").join(name).join("src");
        impure(&folder, &mut wrong)?;
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    Ok(())
}

fn imports() -> Result<Vec<String>> {
    let metadata = MetadataCommand::new().no_deps().exec()?;
    let members: BTreeSet<&str> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
    let mut wrong = Vec::new();
    for package in &metadata.packages {
        let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == package.name.as_str()) else {
            wrong.push(format!("{} has no place among the layers; see xtask/src/layers.rs", package.name));
            continue;
        };
        // Tests may join what the crates themselves must not.
        let used = package.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Normal);
        let broken = used
            .filter(|used| members.contains(used.name.as_str()) && !allowed.contains(&used.name.as_str()));
        wrong.extend(broken.map(|used| format!("{} must not import {}", package.name, used.name)));
    }
    Ok(wrong)
}

fn impure(folder: &Path, wrong: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            impure(&path, wrong)?;
            continue;
        }
        let text = fs::read_to_string(&path)?;
        wrong.extend(
            names_impure(&text).map(|(line, word)| format!("{}:{line} names {word}", path.display())),
        );
    }
    Ok(())
}

/// The lines of `source` that name something that would make a run depend on more than its
/// description.
fn names_impure(source: &str) -> impl Iterator<Item = (usize, &'static str)> {
    (1..).zip(source.lines()).filter_map(|(number, line)| {
        let code = line.split("//").next().unwrap_or_default();
        IMPURE.iter().find(|word| code.contains(**word)).map(|word| (number, *word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_below_study_is_found() {
        let source = "use std::fmt;\n// std::time in a comment\nlet now = Instant::now();\n";
        assert_eq!(names_impure(source).collect::<Vec<_>>(), [(3, "Instant::now")]);
    }
}
