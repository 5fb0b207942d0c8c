//! Finds the settings of a buffer pool that suit a workload and a drive, and says what they gain over the plain ones
//! and how sure that is.
//!
//! A [`Question`] says what is asked, and how many runs an answer takes at most. To answer it, the drive is measured,
//! the settings are chosen one by one (`search`), and other parts of the workload judge the choice (`verdict`). All
//! runs are runs of `fulgurite pool`, so a command repeats each of them.

mod axis;
mod builder;
mod evidence;
mod lab;
mod question;
mod rows;
mod search;
mod text;
mod verdict;

pub use question::{Asked, Question, settings};

use fulgurite_stack::{Progress, StackError};
use lab::Lab;
use std::num::NonZeroUsize;
use verdict::Verdict;

/// An answer.
pub struct Advice {
    question: Question,
    verdict: Verdict,
}

/// Answers a question with `threads` runs at once. The number of threads changes nothing but the time.
pub fn advise(
    mut question: Question,
    threads: NonZeroUsize,
    progress: &Progress,
) -> Result<Advice, StackError> {
    let workloads = std::mem::take(&mut question.workloads);
    let mut lab = Lab::new(&question, workloads, threads, progress);
    let chosen = search::search(&mut lab)?;
    let verdict = verdict::judge(&mut lab, chosen)?;
    Ok(Advice { question, verdict })
}
