//! Which commits are visible.
//!
//! Commits are appended in an order, applied in any, and become durable in the order of the log. A state is visible once
//! every commit up to it is applied, and durable where its durability says so. Readers see visible states only: what
//! they see, no crash takes back.

use crate::Lsn;
use std::collections::VecDeque;

/// A commit that is not visible yet.
#[derive(Clone, Copy, Debug)]
struct Commit {
    since: Lsn,
    lsn: Lsn,
    applied: bool,
    /// It must be durable before anybody sees it.
    waits_for_log: bool,
}

/// The commits in order.
#[derive(Debug, Default)]
pub struct Commits {
    queue: VecDeque<Commit>,
    visible: Lsn,
}

impl Commits {
    /// Everything up to `visible` is there.
    pub fn new(visible: Lsn) -> Commits {
        Commits { queue: VecDeque::new(), visible }
    }

    /// A commit was appended.
    pub fn append(&mut self, since: Lsn, lsn: Lsn, waits_for_log: bool) {
        self.queue.push_back(Commit { since, lsn, applied: false, waits_for_log });
    }

    /// A commit is applied.
    pub fn applied(&mut self, lsn: Lsn) {
        let place = self.queue.partition_point(|commit| commit.lsn < lsn);
        if let Some(commit) = self.queue.get_mut(place) {
            commit.applied = true;
        }
    }

    /// Moves on as far as the log is durable up to `durable`. Returns whether more is visible than before.
    pub fn advance(&mut self, durable: Lsn) -> bool {
        let before = self.visible;
        while let Some(first) = self.queue.front() {
            if !first.applied || (first.waits_for_log && first.lsn > durable) {
                break;
            }
            self.visible = first.lsn;
            self.queue.pop_front();
        }
        self.visible > before
    }

    /// The newest visible state.
    pub fn visible(&self) -> Lsn {
        self.visible
    }

    /// The end of the last commit.
    pub fn last(&self) -> Lsn {
        self.queue.back().map_or(self.visible, |commit| commit.lsn)
    }

    /// Where the first commit begins that is not applied.
    pub fn first_unapplied(&self) -> Option<Lsn> {
        self.queue.iter().find(|commit| !commit.applied).map(|commit| commit.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_visible_when_everything_before_it_is() {
        let mut commits = Commits::new(Lsn(5));
        commits.append(Lsn(5), Lsn(10), true);
        commits.append(Lsn(10), Lsn(20), false);
        commits.append(Lsn(20), Lsn(30), true);
        commits.applied(Lsn(20));
        assert!(!commits.advance(Lsn(30)), "the first is not applied");
        assert_eq!(commits.first_unapplied(), Some(Lsn(5)));
        commits.applied(Lsn(10));
        assert!(!commits.advance(Lsn(9)), "the first is not durable");
        assert!(commits.advance(Lsn(10)));
        assert_eq!((commits.visible(), commits.last()), (Lsn(20), Lsn(30)), "a relaxed one needs no log");
        commits.applied(Lsn(30));
        assert!(commits.advance(Lsn(30)) && commits.first_unapplied().is_none());
    }
}
