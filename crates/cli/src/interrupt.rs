//! Handles interrupts: SIGINT (Ctrl-C), SIGTERM (`kill`) and SIGHUP (a closed terminal). The command removes
//! its unfinished files, reports what remains, and is then terminated by the signal.

use crate::output::say;
use fulgurite_files::unfinished::abandon_all;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::fs;
use std::io::{self, IsTerminal};
use std::os::raw::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The control codes that clear the current line of a terminal.
const CLEAR_LINE: &str = "\r\x1b[2K";

type Words = Box<dyn Fn() -> String + Send>;

/// The report of what remains after an interrupt; `None` if nothing remains.
static LEAVES: Mutex<Option<Words>> = Mutex::new(None);

type Work = Box<dyn FnOnce() + Send>;

/// The work that the first interrupt does in place of ending the process; `None` if it ends it.
static FIRST: Mutex<Option<Work>> = Mutex::new(None);

/// Whether the command is being terminated by a signal.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Sets the report that an interrupt prints from now on.
pub(crate) fn leaves(words: impl Fn() -> String + Send + 'static) {
    *LEAVES.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(words));
}

/// Lets the first interrupt do `work`, after which the command ends by itself. A second one ends it at once.
pub(crate) fn ask_first(work: impl FnOnce() + Send + 'static) {
    *FIRST.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(work));
}

/// Installs a handler for interrupts that stays until the process ends. Makes a write beyond the limit on the length
/// of a file (`ulimit -f`) fail, because its signal would end the process without a word.
pub(crate) fn watch() {
    // Ignore an error: without a handler the process ends as it would have.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    // Leave ignored signals ignored: a command that was started with nohup, or in the background of a script,
    // must not be interrupted.
    let ignored = ignored_signals();
    let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
    // Ignore an error: without a handler an interrupt still terminates the command, but unfinished files
    // remain.
    let Ok(mut signals) = Signals::new(wanted) else { return };
    std::thread::spawn(move || {
        for signal in signals.forever() {
            match FIRST.lock().unwrap_or_else(PoisonError::into_inner).take() {
                Some(work) => work(),
                None => end(signal),
            }
        }
    });
}

/// Waits for the end of the process if an interrupt is being handled. A command whose unfinished files were
/// removed must neither report the missing files nor end by itself.
pub(crate) fn give_way() {
    while IS_ENDING.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

fn end(signal: c_int) {
    IS_ENDING.store(true, Ordering::SeqCst);
    abandon_all();
    let leaves = LEAVES.lock().unwrap_or_else(PoisonError::into_inner);
    let words = leaves.as_ref().map_or_else(String::new, |words| format!("; {}", words()));
    // Clear the line first, because it holds a frame of the progress bar or the terminal's ^C.
    let clear = if io::stderr().is_terminal() { CLEAR_LINE } else { "" };
    say(&format!("{clear}fulgurite: interrupted{words}"));
    // Let the signal terminate the process, so that the shell sees it and ends an interrupted script too.
    let _ = emulate_default_handler(signal);
}

/// Returns the signals that this process ignores, one bit for each from signal 1 on; 0 if the system does not
/// tell.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
