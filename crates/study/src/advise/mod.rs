//! Chooses the settings of a buffer pool for a workload and a drive. The answer says what they gain over the
//! plain settings, and how certain that is.
//!
//! A [`Question`] contains the request and the maximum number of runs. The answer takes three steps: measure
//! the drive, choose the settings one by one (`search`), and judge the choice on other parts of the
//! workload (`verdict`). All runs are runs of `fulgurite pool`, so each can be repeated with one command.

mod axis;
mod evidence;
mod question;
mod builder;
mod lab;
mod search;
mod verdict;
mod rows;
mod text;

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

/// Answers a question with `threads` runs in parallel. The number of threads does not change the answer.
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
