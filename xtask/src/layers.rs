//! Checks which crates import which, and that the simulated core does not use functions that would make runs
//! irreproducible.
//!
//! A run is a pure function of its description only if no crate below `stack` reads a clock, a random source
//! or the environment, or opens files itself. `clippy.toml` lists the functions and types that do this, and
//! each pure crate forbids them. This module lists the pure crates and tests that clippy detects violations.

use crate::root;
use anyhow::{Context, Result, bail, ensure};
use cargo_metadata::{DependencyKind, MetadataCommand};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// The crates of this workspace that each crate may import. A crate that is missing here fails the check. A
/// listed crate need not exist yet.
const LAYERS: &[(&str, &[&str])] = &[
    ("fulgurite-base", &[]),
    ("fulgurite-device", &["fulgurite-base"]),
    ("fulgurite-workload", &["fulgurite-base"]),
    ("fulgurite-ftl", &["fulgurite-base"]),
    ("fulgurite-ssd", &["fulgurite-base", "fulgurite-device", "fulgurite-ftl"]),
    ("fulgurite-uring", &["fulgurite-base", "fulgurite-device"]),
    ("fulgurite-nbd", &[]),
    ("fulgurite-disk", &["fulgurite-base", "fulgurite-device", "fulgurite-ssd"]),
    ("fulgurite-folder", &["fulgurite-base", "fulgurite-disk"]),
    ("fulgurite-log", &["fulgurite-base", "fulgurite-device", "fulgurite-ftl"]),
    ("fulgurite-pool", &["fulgurite-base", "fulgurite-device"]),
    ("fulgurite-engine", &["fulgurite-base", "fulgurite-device", "fulgurite-ftl", "fulgurite-pool"]),
    (
        "fulgurite-bench",
        &["fulgurite-base", "fulgurite-device", "fulgurite-engine", "fulgurite-pool", "fulgurite-workload"],
    ),
    ("fulgurite-crashsim", &["fulgurite-base", "fulgurite-device", "fulgurite-engine", "fulgurite-pool"]),
    ("fulgurite-files", &["fulgurite-engine", "fulgurite-uring"]),
    (
        "fulgurite-db",
        &["fulgurite-base", "fulgurite-device", "fulgurite-engine", "fulgurite-files", "fulgurite-uring"],
    ),
    ("fulgurite-stack", BELOW_STACK),
    (
        "fulgurite-store-file",
        &[
            "fulgurite-base",
            "fulgurite-db",
            "fulgurite-device",
            "fulgurite-engine",
            "fulgurite-files",
            "fulgurite-stack",
            "fulgurite-uring",
        ],
    ),
    ("fulgurite-crashtest", &["fulgurite-base", "fulgurite-files", "fulgurite-folder", "fulgurite-stack"]),
    (
        "fulgurite-serve",
        &[
            "fulgurite-base",
            "fulgurite-device",
            "fulgurite-disk",
            "fulgurite-files",
            "fulgurite-nbd",
            "fulgurite-ssd",
            "fulgurite-stack",
            "fulgurite-workload",
        ],
    ),
    (
        "fulgurite-study",
        &["fulgurite-base", "fulgurite-files", "fulgurite-ssd", "fulgurite-stack", "fulgurite-workload"],
    ),
    (
        "fulgurite",
        &[
            "fulgurite-crashtest",
            "fulgurite-files",
            "fulgurite-folder",
            "fulgurite-serve",
            "fulgurite-store-file",
            "fulgurite-study",
        ],
    ),
    (
        "fulgurite-python",
        &[
            "fulgurite-base",
            "fulgurite-crashtest",
            "fulgurite-db",
            "fulgurite-device",
            "fulgurite-engine",
            "fulgurite-files",
            "fulgurite-ftl",
            "fulgurite-pool",
            "fulgurite-stack",
            "fulgurite-store-file",
            "fulgurite-study",
            "fulgurite-workload",
        ],
    ),
    ("xtask", &[]),
];

const BELOW_STACK: &[&str] = &[
    "fulgurite-base",
    "fulgurite-device",
    "fulgurite-workload",
    "fulgurite-ftl",
    "fulgurite-ssd",
    "fulgurite-uring",
    "fulgurite-log",
    "fulgurite-pool",
    "fulgurite-engine",
    "fulgurite-bench",
    "fulgurite-files",
];

/// The folders of the pure crates. The other crates below `stack` open files: `workload` the traces that it
/// is given, `uring` its drive, and `files` the files of its callers.
const PURE: &[&str] =
    &["base", "device", "ftl", "ssd", "disk", "folder", "log", "pool", "engine", "bench", "nbd"];

/// The line that makes a crate pure. Inner attributes cannot allow again the functions and types that this
/// line forbids.
const FORBIDS: &str = "#![cfg_attr(not(test), forbid(clippy::disallowed_methods, clippy::disallowed_types))]";

/// Statements that clippy must refuse in a pure crate. The test imports their names in groups, which a text
/// search would not find.
const IMPURITIES: &[&str] = &[
    "Instant::now();",
    "clock::SystemTime::now();",
    "env::var(\"HOME\").ok();",
    "env::args().count();",
    "fs::read(\"trace\").ok();",
    "fs::File::open(\"trace\").ok();",
    "Path::new(\"trace\").exists();",
    "HashMap::<u8, u8>::new().len();",
    "let _: std::collections::HashSet<u8> = Default::default();",
    "std::hash::RandomState::new();",
    "std::thread::sleep(std::time::Duration::ZERO);",
];

/// Checks the imports between crates and inside each crate, that the pure crates forbid impure functions, and
/// that clippy detects these.
pub(crate) fn check() -> Result<()> {
    let mut wrong = imports()?;
    for name in PURE {
        let library = root().join("crates").join(name).join("src/lib.rs");
        // A planned crate may already be listed, so a missing folder is no error.
        if library.parent().is_some_and(|folder| folder.exists())
            && !fs::read_to_string(&library)?.lines().any(|line| line == FORBIDS)
        {
            wrong.push(format!("{} lacks the line {FORBIDS}", library.display()));
        }
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    crate::floors::check()?;
    impurities_are_noticed()
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
        // Tests may import crates that the library must not.
        let used = package.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Normal);
        let broken = used
            .filter(|used| members.contains(used.name.as_str()) && !allowed.contains(&used.name.as_str()));
        wrong.extend(broken.map(|used| format!("{} must not import {}", package.name, used.name)));
    }
    Ok(wrong)
}

/// Writes all impure statements into one crate, and expects an error of clippy for each.
fn impurities_are_noticed() -> Result<()> {
    let mut source = format!(
        "{FORBIDS}\nuse std::{{collections::HashMap, env, fs, path::Path, time as clock, time::Instant}};\n"
    );
    let first = source.lines().count() + 1;
    for (number, line) in IMPURITIES.iter().enumerate() {
        source += &format!("pub fn impurity_{number}() {{ {line} }}\n");
    }
    let folder = root().join("target/planted");
    fs::create_dir_all(&folder)?;
    let planted = folder.join("planted.rs");
    fs::write(&planted, source)?;
    let output = Command::new("clippy-driver")
        .args(["--crate-type=lib", "--edition=2024", "--emit=metadata", "--error-format=short", "--out-dir"])
        .args([&folder, &planted])
        .env("CLIPPY_CONF_DIR", root())
        .output()
        .context("clippy-driver cannot be started")?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    for (number, line) in IMPURITIES.iter().enumerate() {
        let place = format!("planted.rs:{}:", first + number);
        ensure!(
            complaints.lines().any(|said| said.contains(&place) && said.contains("disallowed")),
            "clippy lets `{line}` pass in a pure crate; it said:\n{complaints}"
        );
    }
    println!("{} planted impurities were noticed", IMPURITIES.len());
    Ok(())
}
