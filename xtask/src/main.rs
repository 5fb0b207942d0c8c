//! Project chores: `cargo xtask ci` runs every check that a change must pass.

use std::process::{Command, ExitCode};

const STEPS: &[(&str, &[&str])] = &[
    ("format", &["fmt", "--all", "--check"]),
    ("clippy", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    ("tests", &["test", "--workspace", "--no-fail-fast"]),
    ("rustdoc", &["doc", "--workspace", "--no-deps"]),
];

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() != Some("ci") {
        eprintln!("xtask: unknown task; accepted: ci");
        return ExitCode::from(2);
    }
    for (name, arguments) in STEPS {
        println!("== {name}");
        let status = Command::new("cargo").args(*arguments).env("RUSTDOCFLAGS", "-D warnings").status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("xtask: {name} failed");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
