//! Executes the command `crashtest`.

use crate::common::Common;
use crate::interrupt;
use crate::output::{say, written};
use crate::progress::watched;
use clap::Args;
use fulgurite_crashtest::{Check, JUNIT_BEGINNING, MALLOC, Typed, crashtest};
use fulgurite_files::output::{Named, Replaces, write_whole};
use fulgurite_study::{StackError, runner};
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The arguments of `crashtest`.
#[derive(Args)]
pub(crate) struct CrashtestArguments {
    /// Number of power cuts, each with a seed of its own [default: 100]
    #[arg(long, value_name = "N")]
    cuts: Option<String>,
    /// Shell command that checks the folder after a cut: it ends with exit code 0 if all is well. Its input is what the
    /// program printed before the cut
    #[arg(long, value_name = "COMMAND")]
    check: String,
    /// Shell command that fills the folder before the program starts; nothing of it is ever lost
    #[arg(long, value_name = "COMMAND")]
    setup: Option<String>,
    /// After one of N cuts, cut the power again while the checker recovers the folder, and run the checker once more; 0
    /// for never [default: 4]
    #[arg(long, value_name = "N")]
    recovery_cuts: Option<String>,
    /// Rules of the losses of a cut: journaled (as ext4 and XFS) or strict (as POSIX allows), with options
    /// (strict:tear=4KiB) [default: journaled]
    #[arg(long, value_name = "RULES")]
    folder: Option<String>,
    /// Longest time that the program or the checker may take [default: 60s]
    #[arg(long, value_name = "TIME")]
    time: Option<String>,
    /// Stop at the first violation
    #[arg(long)]
    stop: bool,
    /// Keep the files of each violation in this new folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Also write the outcome as a JUnit report
    #[arg(long, value_name = "FILE.xml")]
    junit: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// Starts this process again with [`MALLOC`] in its environment, which glibc reads only at the start. Returns if it is
/// there. Without it, each mount clears 32 MiB, which is most of the time of a small program's cut; so a process that
/// cannot be started again goes on.
fn start_with_malloc() {
    let (name, value) = MALLOC;
    let mut arguments = std::env::args_os();
    if cfg!(target_env = "gnu")
        && std::env::var_os(name).is_none()
        && let (Ok(program), Some(first)) = (std::env::current_exe(), arguments.next())
    {
        let _ = Command::new(program).arg0(first).args(arguments).env(name, value).exec();
    }
}

/// Runs the tests and prints their outcome. Fails if there is a violation.
pub(crate) fn run(arguments: &CrashtestArguments, common: &Common) -> Result<(), StackError> {
    start_with_malloc();
    let typed = Typed {
        cuts: arguments.cuts.as_deref(),
        seed: common.seed.as_deref(),
        recovery_cuts: arguments.recovery_cuts.as_deref(),
        folder: arguments.folder.as_deref(),
        time: arguments.time.as_deref(),
        check: Check::Command(arguments.check.clone()),
        setup: arguments.setup.as_deref(),
        keep: arguments.keep.as_deref(),
        stop: arguments.stop,
        program: &arguments.program,
    };
    let asked = typed.asked(common.threads.unwrap_or_else(runner::all_cores))?;
    let junit = arguments
        .junit
        .as_deref()
        .map(|path| Named::new("--junit", path).replacing(Replaces::Beginning(JUNIT_BEGINNING)));
    fulgurite_files::output::check(&[], junit.as_slice())?;
    let end = Arc::clone(&asked.end);
    interrupt::ask_first(move || end.store(true, Ordering::SeqCst));
    let outcome = watched(common.quiet, "cuts", |progress| crashtest(&asked, progress))?;
    if let Some(junit) = junit {
        let name: Vec<String> = arguments.program.iter().map(|word| word.display().to_string()).collect();
        let report = outcome.junit(&name.join(" "));
        write_whole::<(), StackError>(junit, |file| {
            file.write_all(report.as_bytes()).map_err(|error| junit.failed(error).into())
        })?;
    }
    let text = match common.json {
        true => format!("{}\n", serde_json::json!([outcome])),
        false => outcome.in_words(),
    };
    written(io::stdout().write_all(text.as_bytes()))?;
    if asked.end.load(Ordering::SeqCst) {
        return Err(StackError::run(format!("interrupted after {} of {} cuts", outcome.cuts, asked.cuts)));
    }
    match outcome.violations.len() {
        0 => Ok(()),
        violations => {
            say("");
            Err(StackError::run(format!(
                "{violations} of {} cuts broke the program's promises",
                outcome.cuts
            )))
        }
    }
}
