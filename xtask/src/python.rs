//! Checks the Python package: builds a wheel, installs it into a new virtual environment, and runs the tests
//! there.
//!
//! The wheel is compiled with the gate's profile. The feature `gate` selects the features of the workspace's
//! build, so that little more than the bindings is compiled. The tools, and the packages that the tests
//! compare with, are in a separate environment, `target/python/tools`, which is created once. The package
//! itself needs none of them, and a test of this runs first.

use crate::beside::Beside;
use crate::{root, run};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file that lists the packages of the tools' environment with exact versions, so that the gate is
/// reproducible.
const REQUIREMENTS: &str = "python/requirements.txt";

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
