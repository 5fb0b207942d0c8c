//! Checks that the lock files of the crates outside the workspace are current: `benches/peers`, which compares
//! Fulgurite with other engines, and the example `turmoil`. A new dependency of one of our crates must be in their
//! lock files too.

use crate::root;
use anyhow::{Context, Result, ensure};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};
use std::collections::BTreeSet;
use std::fs;
use toml::Table;

const OUTSIDE: &[&str] = &["benches/peers", "examples/turmoil"];

pub(crate) fn check() -> Result<()> {
    let metadata = MetadataCommand::new().no_deps().exec()?;
    for folder in OUTSIDE {
        let file = root().join(folder).join("Cargo.lock");
        let lock = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let stale = stale(&lock.parse()?, &metadata);
        ensure!(
            stale.is_empty(),
            "{folder}/Cargo.lock is not up to date with {}: `cargo metadata --manifest-path {folder}/Cargo.toml` \
                updates it",
            stale.join(", ")
        );
    }
    Ok(())
}

/// Returns the crates of this workspace whose dependencies differ between `lock` and their manifests.
fn stale(lock: &Table, metadata: &Metadata) -> Vec<String> {
    let packages = lock.get("package").and_then(|packages| packages.as_array()).into_iter().flatten();
    let mut stale = Vec::new();
    for locked in packages {
        let name = locked.get("name").and_then(|name| name.as_str()).unwrap_or_default();
        let Some(package) = metadata.packages.iter().find(|package| package.name.as_str() == name) else {
            continue;
        };
        let needed: BTreeSet<&str> = package
            .dependencies
            .iter()
            .filter(|dependency| dependency.kind != DependencyKind::Development)
            .map(|dependency| dependency.name.as_str())
            .collect();
        let listed = locked.get("dependencies").and_then(|listed| listed.as_array()).into_iter().flatten();
        // If there are several versions of a package, the version follows the name.
        let listed: BTreeSet<&str> =
            listed.filter_map(|dependency| dependency.as_str()?.split(' ').next()).collect();
        if needed != listed {
            stale.push(name.to_owned());
        }
    }
    stale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_that_is_not_locked_is_noticed() {
        let metadata = MetadataCommand::new().no_deps().exec().unwrap();
        let with = |dependencies: &str| {
            let lock = format!("[[package]]\nname = \"fulgurite-log\"\ndependencies = [{dependencies}]");
            stale(&lock.parse().unwrap(), &metadata)
        };
        let log = metadata.packages.iter().find(|package| package.name.as_str() == "fulgurite-log").unwrap();
        let needed = log.dependencies.iter().filter(|needed| needed.kind != DependencyKind::Development);
        let needed: Vec<String> = needed.map(|needed| format!("\"{}\"", needed.name)).collect();
        assert_eq!(with(&needed.join(",")), Vec::<String>::new());
        assert_eq!(with(&needed[1..].join(",")), ["fulgurite-log"]);
    }
}
