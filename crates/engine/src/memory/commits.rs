//! The visibility of commits.
//!
//! Commits are appended to the log in order, applied in any order, and become durable in the order of the
//! log. A state is visible once every commit up to it is applied, and is durable if its durability demands
//! that. Readers see only visible states, so a crash does not take back data that readers have seen.

use crate::Lsn;
use std::collections::VecDeque;

/// A commit that is not visible yet.
#[derive(Clone, Copy, Debug)]
struct Commit {
    since: Lsn,
    lsn: Lsn,
    applied: bool,
    /// Whether the commit must be durable before it is visible.
    waits_for_log: bool,
}

/// The commits that are not visible yet, in order, and the newest visible state.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    queue: VecDeque<Commit>,
    visible: Lsn,
}

impl Commits {
    /// Creates a state in which all commits up to `visible` are visible.
    pub(crate) fn new(visible: Lsn) -> Commits {
        Commits { queue: VecDeque::new(), visible }
    }

    /// Adds a commit that was appended to the log and ends at `lsn`. Its first record begins at `since`, which is
    /// before the last one if the transaction was prepared.
    pub(crate) fn append(&mut self, since: Lsn, lsn: Lsn, waits_for_log: bool) {
        self.queue.push_back(Commit { since, lsn, applied: false, waits_for_log });
    }

    /// Marks a commit as applied.
    pub(crate) fn applied(&mut self, lsn: Lsn) {
        let place = self.queue.partition_point(|commit| commit.lsn < lsn);
        if let Some(commit) = self.queue.get_mut(place) {
            commit.applied = true;
        }
    }

    /// Makes commits visible for which the log is durable up to `durable`. Returns whether new commits are
    /// visible.
    pub(crate) fn advance(&mut self, durable: Lsn) -> bool {
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

    /// Returns the LSN of the newest visible state.
    pub(crate) fn visible(&self) -> Lsn {
        self.visible
    }

    /// Returns the LSN of the last commit.
    pub(crate) fn last(&self) -> Lsn {
        self.queue.back().map_or(self.visible, |commit| commit.lsn)
    }

    /// Returns the first LSN at which a record of an unapplied commit begins; `None` if all commits are
    /// applied.
    pub(crate) fn first_unapplied(&self) -> Option<Lsn> {
        self.queue.iter().filter(|commit| !commit.applied).map(|commit| commit.since).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_visible_when_all_earlier_ones_are() {
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
        commits.append(Lsn(8), Lsn(40), false);
        assert_eq!(commits.first_unapplied(), Some(Lsn(8)), "it was prepared before");
        commits.applied(Lsn(40));
        commits.applied(Lsn(30));
        assert!(commits.advance(Lsn(30)) && commits.first_unapplied().is_none());
    }
}
