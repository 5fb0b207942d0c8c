//! Finds the chart library that reports carry: ECharts, in the registry package `charming`, which
//! the lock file pins. Nothing of it is copied into this repository, and the package is not compiled: a feature that
//! nobody enables makes cargo keep its sources.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const SCRIPT: &str = "src/asset/echarts-5.5.1.min.js";

/// Names the script's file, for those who build where cargo cannot be asked.
const OVERRIDE: &str = "FULGURITE_ECHARTS_FILE";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={OVERRIDE}");
    let script = env::var_os(OVERRIDE).map_or_else(|| package_folder("charming").join(SCRIPT), PathBuf::from);
    assert!(script.is_file(), "{} is not there", script.display());
    println!("cargo:rustc-env=FULGURITE_ECHARTS={}", script.display());
}

/// Where cargo keeps the sources of a dependency. It has them already, so the network is only asked
/// when a first try without it fails.
fn package_folder(name: &str) -> PathBuf {
    metadata(name, &["--offline"])
        .or_else(|_| metadata(name, &[]))
        .unwrap_or_else(|error| panic!("cargo metadata does not tell where {name} is: {error}"))
}

fn metadata(name: &str, options: &[&str]) -> Result<PathBuf, String> {
    let output = Command::new(env::var_os("CARGO").ok_or("CARGO is not set")?)
        .args(["metadata", "--format-version", "1", "--features", "chart-library", "--filter-platform"])
        .arg(env::var_os("HOST").ok_or("HOST is not set")?)
        .args(options)
        .arg("--manifest-path")
        .arg(
            Path::new(&env::var_os("CARGO_MANIFEST_DIR").ok_or("CARGO_MANIFEST_DIR is not set")?)
                .join("Cargo.toml"),
        )
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let packages = metadata["packages"].as_array().ok_or("no packages")?;
    let package = packages.iter().find(|package| package["name"] == name).ok_or("no such package")?;
    let manifest = package["manifest_path"].as_str().ok_or("no manifest")?;
    Ok(Path::new(manifest).parent().ok_or("no folder")?.to_owned())
}
