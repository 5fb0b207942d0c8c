//! Chooses the settings of a buffer pool for a workload and a drive. The answer says how much the chosen
//! settings gain over the plain ones, which are usually the defaults, and how certain this gain is.
//!
//! A [`Question`] contains the request and the maximum number of runs. The answer takes three steps: it
//! measures the drive, chooses the settings one by one (`search`), and judges the choice on other parts of
//! the workload (`verdict`). All runs are runs of `fulgurite pool`, so each can be repeated with one command.

mod axis;
mod evidence;
mod question;
mod builder;
mod lab;
mod search;
mod verdict;
mod rows;
mod text;

pub(crate) use builder::writes;
pub(crate) use lab::Stage;
pub use question::{Asked, Question, settings};
pub use rows::quoted;
pub(crate) use text::{continued, listed};

use fulgurite_stack::{Progress, StackError};
use lab::Lab;
use std::num::NonZeroUsize;
use verdict::Verdict;

/// The answer to a question, with the advised settings and the evidence for them.
pub struct Advice {
    question: Question,
    verdict: Verdict,
}

/// Answers a question, with up to `threads` runs in parallel. The number of threads does not change the
/// answer.
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
