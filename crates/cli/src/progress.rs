//! Shows the progress of a command on standard error.

use crate::output::say;
use fulgurite_study::Progress;
use fulgurite_study::outlook::duration;
use fulgurite_study::progress::Snapshot;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// The number of steps of a full progress bar.
const PARTS: u64 = 1000;
/// The remaining time is shown from this completed share and this wall-clock time on.
const LEFT_AFTER: (f64, Duration) = (0.01, Duration::from_secs(1));

/// Without a terminal, a line of progress is printed after this wall-clock time, and again when twice the
/// time has passed. So even a long command prints few lines to a log file.
const SAID_AFTER: Duration = Duration::from_secs(60);

/// Does `work` and shows its progress meanwhile. Prints the remarks of the work at the end. `quiet`
/// suppresses both. `counts` names the units of work: requests or records.
pub(crate) fn watched<T>(quiet: bool, counts: &str, work: impl FnOnce(&Progress) -> T) -> T {
    watched_with_remarks(quiet, counts, work).0
}

/// Does the same as [`watched`], and also returns the remarks of the work.
pub(crate) fn watched_with_remarks<T>(
    quiet: bool,
    counts: &str,
    work: impl FnOnce(&Progress) -> T,
) -> (T, Vec<String>) {
    let progress = Progress::default();
    let result = shown(quiet, counts, &progress, || work(&progress));
    // Print each remark once, because several runs of a grid may leave the same remark.
    let mut remarks: Vec<String> = Vec::new();
    for remark in progress.take_remarks() {
        if !remarks.contains(&remark) {
            if !quiet {
                say(&remark);
            }
            remarks.push(remark);
        }
    }
    (result, remarks)
}

fn shown<T>(quiet: bool, counts: &str, progress: &Progress, work: impl FnOnce() -> T) -> T {
    if quiet {
        return progress.watching(work);
    }
    // Draw a bar only on a terminal, because its frames would fill a log file.
    let has_bar = io::stderr().is_terminal();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch =
            || if has_bar { draw(counts, progress, &is_done) } else { tell(counts, progress, &is_done) };
        let watcher = scope.spawn(watch).thread().clone();
        if has_bar {
            progress.wake(watcher.clone());
        }
        // End the watcher even if `work` panics, or the scope would wait for the watcher for ever.
        let _ends = Ends(&is_done, watcher);
        progress.watching(work)
    })
}

struct Ends<'a>(&'a AtomicBool, Thread);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
        // Wake the watcher, so that nobody waits for its next frame.
        self.1.unpark();
    }
}

/// Prints a line of progress at growing intervals, until the work is done.
fn tell(counts: &str, progress: &Progress, is_done: &AtomicBool) {
    let start = Instant::now();
    let mut next = SAID_AFTER;
    while !is_done.load(Ordering::Acquire) {
        let elapsed = start.elapsed();
        if elapsed >= next {
            say(&Seen { snapshot: progress.snapshot(), elapsed }.words(counts));
            next = elapsed * 2;
        }
        std::thread::park_timeout(next.saturating_sub(elapsed));
    }
}

/// Draws a progress bar until the work is done.
fn draw(counts: &str, progress: &Progress, is_done: &AtomicBool) {
    let style =
        |template| ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    // A line of 80 columns has space for a short bar and the text. Longer text is cut, so that no frame takes
    // two lines.
    let styles = [style("{spinner} {wide_msg}"), style("{bar:12} {wide_msg}")];
    let start = Instant::now();
    // Raise the rate, because the default rate would suppress the frame at the beginning of a step.
    let target = ProgressDrawTarget::stderr_with_hz(100);
    let bar = ProgressBar::with_draw_target(Some(PARTS), target).with_style(styles[0].clone());
    let mut has_share = false;
    while !is_done.load(Ordering::Acquire) {
        let seen = Seen { snapshot: progress.snapshot(), elapsed: start.elapsed() };
        let share = seen.share();
        if has_share != share.is_some() {
            has_share = share.is_some();
            bar.set_style(styles[usize::from(has_share)].clone());
        }
        // Set the bar before the text, so that the bar does not lag behind: each of these calls may draw a
        // frame.
        bar.set_position((share.unwrap_or(0.0) * PARTS as f64) as u64);
        bar.set_message(seen.words(counts));
        bar.tick();
        std::thread::park_timeout(Duration::from_millis(100));
    }
    bar.finish_and_clear();
}

/// The progress at one moment, with the wall-clock time since the beginning.
struct Seen {
    snapshot: Snapshot,
    elapsed: Duration,
}

impl Seen {
    /// Returns the completed share of the work; `None` if it is zero or not known. For several runs it is a
    /// share of their expected time, because a request of one run may cost a thousand times as much as a
    /// request of another. For one run it is a share of its requests.
    fn done(&self) -> Option<f64> {
        let Snapshot { done, total, runs, passed, expected, .. } = &self.snapshot;
        if *runs > 1 && *expected > 0 { share(*passed, *expected) } else { share(*done, *total) }
    }

    /// Returns the completed share of the work or, before the first request, of the current step.
    fn share(&self) -> Option<f64> {
        let of_step = || self.snapshot.step.as_ref().and_then(|(_, done, total)| share(*done, *total));
        self.done().or_else(of_step)
    }

    fn words(&self, counts: &str) -> String {
        let Snapshot { done, total, runs_done, runs, expected, step, .. } = &self.snapshot;
        let mut parts = Vec::new();
        // Never show unfinished work as 100 %, because the totals may be estimates.
        let percent = |share: f64| (100.0 * share).floor().min(99.0);
        match (self.done(), *done) {
            (Some(share), _) if *runs > 1 && *expected > 0 => parts.push(format!("{}%", percent(share))),
            (Some(share), _) => parts.push(format!("{}% of {} {counts}", percent(share), HumanCount(*total))),
            (None, done) if done > 0 && *total == 0 => parts.push(format!("{} {counts}", HumanCount(done))),
            _ => {}
        }
        if *runs > 1 {
            parts.push(format!("{} of {} runs", HumanCount(*runs_done), HumanCount(*runs)));
        }
        if let Some((what, done, total)) = step {
            let share = (*done > 0 && *total > 0).then(|| 100 * u128::from(*done) / u128::from(*total));
            parts.push(share.map_or_else(|| what.clone(), |share| format!("{what}, {}%", share.min(99))));
        }
        parts.push(duration_so_far(self.elapsed));
        parts.join(", ") + &self.left()
    }

    /// Describes the remaining time; empty if too little work is complete for an estimate.
    fn left(&self) -> String {
        // Do not use the share of a step, because other steps of unknown length may follow it.
        let Some(share) = self.done().filter(|share| *share >= LEFT_AFTER.0) else { return String::new() };
        if self.elapsed < LEFT_AFTER.1 || share >= 1.0 {
            return String::new();
        }
        format!(" ({} left)", duration(self.elapsed.as_secs_f64() * (1.0 - share) / share))
    }
}

fn share(done: u64, total: u64) -> Option<f64> {
    (done > 0 && total > 0).then(|| (done as f64 / total as f64).min(1.0))
}

fn duration_so_far(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    if seconds < 100 { format!("{seconds} s") } else { duration(seconds as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(snapshot: Snapshot, seconds: u64) -> String {
        Seen { snapshot, elapsed: Duration::from_secs(seconds) }.words("requests")
    }

    #[test]
    fn unknown_figures_are_not_shown() {
        let nothing = Snapshot::default();
        assert_eq!(words(nothing.clone(), 3), "3 s");
        let step = |done, total| Some(("reading t".to_owned(), done, total));
        assert_eq!(words(Snapshot { step: step(0, 0), ..nothing.clone() }, 3), "reading t, 3 s");
        assert_eq!(words(Snapshot { step: step(0, 50), ..nothing.clone() }, 3), "reading t, 3 s");
        let begun = Snapshot { total: 1000, runs: 12, ..nothing.clone() };
        assert_eq!(words(begun.clone(), 5), "0 of 12 runs, 5 s");
        // Runs of unknown length show only the number of completed requests.
        assert_eq!(words(Snapshot { done: 2000, runs: 1, ..nothing }, 5), "2,000 requests, 5 s");
        let more = Snapshot { done: 1001, runs_done: 11, ..begun };
        assert_eq!(words(more, 5), "99% of 1,000 requests, 11 of 12 runs, 5 s");
        let none_by_time = Snapshot { done: 10, total: 1000, runs: 12, expected: 900, ..Snapshot::default() };
        assert_eq!(words(none_by_time, 5), "0 of 12 runs, 5 s");
    }

    #[test]
    fn remaining_time_follows_from_completed_work() {
        let half = Snapshot { done: 500, total: 1000, runs: 1, ..Snapshot::default() };
        assert_eq!(words(half.clone(), 10), "50% of 1,000 requests, 10 s (10 s left)");
        assert_eq!(words(half, 0), "50% of 1,000 requests, 0 s", "too early to tell");
        let little = Snapshot { done: 9, total: 1000, runs: 1, ..Snapshot::default() };
        assert_eq!(words(little, 10), "0% of 1,000 requests, 10 s", "too little to tell");
        // The share is that of the expected time, 25 %, although the cheap runs have nine tenths of the
        // requests.
        let cheap = Snapshot {
            done: 900,
            total: 1000,
            runs_done: 3,
            runs: 12,
            passed: 25,
            expected: 100,
            step: None,
        };
        assert_eq!(words(cheap, 10), "25%, 3 of 12 runs, 10 s (30 s left)");
        let step = Some(("making d".to_owned(), 25, 100));
        assert_eq!(words(Snapshot { step, ..Snapshot::default() }, 5), "making d, 25%, 5 s");
    }
}
