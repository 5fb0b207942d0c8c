//! Checks the Python package: builds a wheel, installs it into a new virtual environment, and runs the tests
//! there.
//!
//! The wheel is compiled with the gate's profile. The feature `gate` selects the features of the workspace's
//! build, so that little more than the bindings is compiled. The tools, and the packages that the tests
//! compare with, are in a separate environment, `target/python/tools`, which is created once. The package
//! itself needs none of them, and a test of this runs first.

use crate::beside::Beside;
use crate::{build, root, run};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file that lists the packages of the tools' environment with exact versions, so that the gate is
/// reproducible.
const REQUIREMENTS: &str = "python/requirements.txt";

/// The package whose library is the compiled module.
const BINDINGS: &str = "fulgurite-python";

/// The first steps of a user who has installed no other package.
const ALONE: &str = "
import fulgurite
result = fulgurite.sweep('pool', workload='zipf', device='none', ops='10K', replacement=['lru', 'sieve'])
assert result['ops'] == [10_000, 10_000]
try:
    result.to_arrow()
except fulgurite.MissingPackageError as error:
    assert 'pip install' in str(error), error
else:
    raise SystemExit('the environment is not fresh: it has pyarrow')
";

/// The installation of the tools, which runs beside the first steps.
static INSTALLING: Beside = Beside::nothing();

/// Builds the wheel, installs it, and runs the tests and the type checkers.
pub(crate) fn check() -> Result<()> {
    INSTALLING.end()?;
    compiles_only_the_bindings()?;
    let tools = find()?;
    let folder = root().join("target/python");
    let wheels = folder.join("wheels");
    // Removes earlier wheels, because a wheel of another version might be installed instead.
    if wheels.exists() {
        fs::remove_dir_all(&wheels)?;
    }
    let maturin = ["build", "--profile", "gate", "--features", "gate", "--quiet", "--out"];
    run(Command::new(tools.join("bin/maturin")).args(maturin).arg(&wheels))?;
    let wheel = fs::read_dir(&wheels)?.next().context("maturin built no wheel")??.path();
    let fresh = folder.join("fresh");
    run(Command::new("python3").args(["-m", "venv", "--clear", "--without-pip"]).arg(&fresh))?;
    let python = fresh.join("bin/python");
    run(Command::new(tools.join("bin/python"))
        .args(["-m", "pip", "--quiet", "--disable-pip-version-check", "--python"])
        .arg(&python)
        .args(["install", "--no-deps", "--no-index"])
        .arg(&wheel))?;
    run(Command::new(&python).args(["-I", "-c", ALONE]))?;
    // Lets the tests find the packages of the tools' environment. The package's own environment has
    // precedence.
    let place = site_packages(&fresh)?;
    fs::write(place.join("tools.pth"), format!("{}\n", site_packages(&tools)?.canonicalize()?.display()))?;
    let tests = root().join("python/tests");
    run(Command::new(&python).args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"]).arg(&tests))?;
    // Checks the types of the package itself, and of a program that uses it.
    let checked = [place.join("fulgurite"), tests.join("typed.py")];
    checked.iter().try_for_each(|checked| {
        run(Command::new(&python)
            .args(["-m", "mypy", "--config-file", "pyproject.toml", "--cache-dir"])
            .arg(folder.join("mypy"))
            .arg(checked))
    })?;
    let pyright = tools.join("bin/basedpyright");
    run(Command::new(pyright).arg("--pythonpath").arg(&python).args(&checked))
}

/// Fails if the wheel needs a package with features that the workspace's build does not select. Cargo would
/// compile this package again, and every crate above it.
fn compiles_only_the_bindings() -> Result<()> {
    let wheel = features(&["--package", BINDINGS, "--features", "gate"])?;
    let workspace = features(&["--workspace", "--features", build::FEATURES])?;
    let again = compiled_again(&wheel, &workspace);
    ensure!(
        again.is_empty(),
        "the wheel and the workspace's tests select different features, so these packages would be \
         compiled twice: {}; list the missing features in the feature `gate` of crates/python/Cargo.toml",
        again.join(", ")
    );
    Ok(())
}

/// Returns the packages of the wheel, with their features, that the workspace's build does not have. The
/// bindings themselves are left out.
fn compiled_again<'a>(wheel: &'a BTreeSet<String>, workspace: &'a BTreeSet<String>) -> Vec<&'a str> {
    let is_binding = |package: &str| package.split(' ').next() == Some(BINDINGS);
    wheel.difference(workspace).map(String::as_str).filter(|package| !is_binding(package)).collect()
}

/// Returns every package that cargo selects with `arguments`, in a line with its version and its features.
fn features(arguments: &[&str]) -> Result<BTreeSet<String>> {
    let form = ["tree", "--no-dedupe", "--prefix", "none", "--format", "{p} with features {f}"];
    let tree = Command::new("cargo").args(form).args(arguments).current_dir(root()).output()?;
    ensure!(tree.status.success(), "cargo tree failed: {}", String::from_utf8_lossy(&tree.stderr));
    Ok(String::from_utf8(tree.stdout)?.lines().map(str::to_owned).collect())
}

/// Returns the folder of an environment's packages.
fn site_packages(environment: &Path) -> Result<PathBuf> {
    let python = fs::read_dir(environment.join("lib"))?.next().context("an environment has a library")??;
    Ok(python.path().join("site-packages"))
}

fn tools() -> PathBuf {
    root().join("target/python/tools")
}

/// Returns the tools' environment, or an error that says how to create it.
pub(crate) fn find() -> Result<PathBuf> {
    let tools = tools();
    let made = fs::read_to_string(tools.join("requirements.txt")).unwrap_or_default();
    ensure!(
        made == fs::read_to_string(root().join(REQUIREMENTS))?,
        "there is no Python environment with {REQUIREMENTS} in target/python/tools; `cargo xtask ci \
         --install` creates one and then runs the checks"
    );
    Ok(tools)
}

/// Starts the creation of the tools' environment if there is none. Called only if the user gave `--install`.
pub(crate) fn install() -> Result<()> {
    if find().is_ok() {
        return Ok(());
    }
    // Checks the Python version first, so that the error appears before the build.
    let python =
        Command::new("python3").args(["-c", "import sys, venv; print(sys.version_info >= (3, 9))"]).output();
    match python {
        Ok(said) if said.stdout == b"True\n" => {}
        _ => bail!(
            "there is no python3 of version 3.9 or later with the module venv; install it (Debian: python3-venv)"
        ),
    }
    INSTALLING.begin(make_tools);
    Ok(())
}

fn make_tools() -> Result<()> {
    let tools = tools();
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&tools))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"];
    run(Command::new(tools.join("bin/python")).args(pip).args(["--requirement", REQUIREMENTS]))?;
    // Copies the requirements as the last step, because the copy marks a complete environment.
    fs::copy(root().join(REQUIREMENTS), tools.join("requirements.txt"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: a package is compiled again if the wheel selects other features of it than the workspace.
    /// The bindings are compiled only for the wheel, so their features may differ.
    #[test]
    fn a_package_with_other_features_is_noticed() {
        let packages = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        let workspace = packages(&["fulgurite-python v1 with features ", "slab v1 with features std"]);
        let same = packages(&["fulgurite-python v1 with features gate", "slab v1 with features std"]);
        assert!(compiled_again(&same, &workspace).is_empty());
        let other = packages(&["slab v1 with features "]);
        assert_eq!(compiled_again(&other, &workspace), ["slab v1 with features "]);
    }
}
