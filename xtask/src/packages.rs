//! Debian's packages with the programs that steps of the gate start: a browser, and the clients of served drives. One
//! call of apt installs all that are missing, beside the first steps.

use crate::beside::Beside;
use crate::run;
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use std::process::Command;

/// A program that a step needs.
struct Wanted {
    step: &'static str,
    /// The names of the program, of which any will do.
    names: &'static [&'static str],
    /// The package that has it.
    package: &'static str,
}

const fn wanted(step: &'static str, names: &'static [&'static str], package: &'static str) -> Wanted {
    Wanted { step, names, package }
}

/// The program names of suitable browsers.
const BROWSERS: &[&str] = &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

const WANTED: &[Wanted] = &[
    wanted("report in a browser", BROWSERS, "chromium"),
    wanted("tests", &["nbdinfo"], "libnbd-bin"),
    wanted("tests", &["qemu-io"], "qemu-utils"),
    wanted("tests", &["fio"], "fio"),
    wanted("tests", &["fusermount3"], "fuse3"),
    wanted("tests", &["mkfs.ext4"], "e2fsprogs"),
    wanted("tests", &["fuse2fs"], "fuse2fs"),
    wanted("tests", &["sqlite3"], "sqlite3"),
];

/// The installation, which runs beside the first steps.
static INSTALLING: Beside = Beside::nothing();

/// Returns the program that has one of these names.
fn find(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // The path of a user may lack the folders of programs for administrators, which the tests add.
    let folders: Vec<PathBuf> =
        std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]).collect();
    let files = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    files.into_iter().find(|file| file.is_file())
}

/// Returns what these steps need and `has` does not find.
fn missing(steps: &[&str], has: impl Fn(&[&str]) -> bool) -> Vec<&'static Wanted> {
    WANTED.iter().filter(|wanted| steps.contains(&wanted.step) && !has(wanted.names)).collect()
}

/// Fails if a program that these steps need is missing, with a sentence that says how to install it.
pub(crate) fn check(steps: &[&str]) -> Result<()> {
    refuse(&missing(steps, |names| find(names).is_some()))
}

fn refuse(missing: &[&Wanted]) -> Result<()> {
    let programs = missing.iter().map(|wanted| format!("{} ({})", wanted.names.join(" or "), wanted.package));
    ensure!(
        missing.is_empty(),
        "these programs are missing: {}; `cargo xtask ci --install` installs Debian's packages, named in brackets, \
         and then checks",
        programs.collect::<Vec<_>>().join(", ")
    );
    Ok(())
}

/// Starts the installation of what these steps need and lack. Called only if the user gave `--install`.
pub(crate) fn install(steps: &[&str]) {
    let missing = missing(steps, |names| find(names).is_some());
    let packages: Vec<&str> = missing.iter().map(|wanted| wanted.package).collect();
    if !packages.is_empty() {
        INSTALLING.begin(move || apt(&packages));
    }
}

fn apt(packages: &[&str]) -> Result<()> {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
    let (program, first): (&str, &[&str]) =
        if is_root { ("apt-get", &[]) } else { ("sudo", &["-n", "apt-get"]) };
    let apt = |arguments: &[&str]| {
        run(Command::new(program).args(first).args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update", "-qq"])?;
    apt(&[&["install", "-y", "-qq", "--no-install-recommends"], packages].concat())
}

/// Waits until the installation has ended, if one was started.
pub(crate) fn installed() -> Result<()> {
    INSTALLING.end()
}

/// Returns the browser.
pub(crate) fn browser() -> Result<PathBuf> {
    find(BROWSERS).context("there is no browser")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: what is missing is named with its package, if a step that is to run needs it, and with nothing missing
    /// there is nothing to install.
    #[test]
    fn missing_programs_are_named_with_their_packages() {
        let steps = ["format", "tests"];
        assert!(missing(&steps, |_| true).is_empty() && refuse(&[]).is_ok());
        let lacking = missing(&steps, |names| names != ["fuse2fs"] && names != ["nbdinfo"]);
        let said = refuse(&lacking).unwrap_err().to_string();
        assert!(
            said.starts_with("these programs are missing: nbdinfo (libnbd-bin), fuse2fs (fuse2fs); "),
            "{said}"
        );
        assert!(said.contains("cargo xtask ci --install"), "{said}");
        assert!(missing(&["report in a browser"], |names| names.contains(&"google-chrome")).is_empty());
        assert_eq!(missing(&["report in a browser"], |_| false)[0].package, "chromium");
        assert!(missing(&["format"], |_| false).is_empty());
    }
}
