//! Compares drives for a workload that arrives at times of its own: which of them meet the user's
//! requirements, and by how much.
//!
//! A [`Question`] has the workload, the drives and the requirements. Each drive is measured in four steps, all
//! by runs of `fulgurite replay`, so each can be repeated with one command: the workload at its own rate in the
//! drive's steady state; the rate that the drive sustains in a closed loop; the same drive with more spare
//! space, another placement or TRIM; and a search for the greatest rate at which the requirements hold.

mod requirement;
mod question;
mod lab;
mod rows;
mod text;

pub use question::{Asked, Question, settings};
pub(crate) use rows::{CHANGED, DRIVE};

use fulgurite_stack::{Progress, StackError};
use lab::{Lab, Measured};
use std::num::NonZeroUsize;

/// The answer to a question: the figures of each drive, the most suitable first.
pub struct Answer {
    question: Question,
    drives: Vec<Measured>,
    executed: u64,
}

/// Answers a question, with up to `threads` runs in parallel. The number of threads does not change the
/// answer.
pub fn which_drive(
    mut question: Question,
    threads: NonZeroUsize,
    progress: &Progress,
) -> Result<Answer, StackError> {
    let workloads = std::mem::take(&mut question.workloads);
    let mut lab = Lab::new(&question, workloads, threads, progress);
    let mut drives = lab.measure()?;
    let executed = lab.executed;
    // A drive is the better choice if it meets the requirements more surely, then if it has more headroom.
    drives.sort_by(|a, b| {
        b.meets.cmp(&a.meets).then_with(|| b.headroom.times().total_cmp(&a.headroom.times()))
    });
    Ok(Answer { question, drives, executed })
}
