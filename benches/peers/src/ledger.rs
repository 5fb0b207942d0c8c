//! Records the writes of threads for a sample of the rows, to detect lost, stale and invented values.
//!
//! Every value that is read is checked against its row and version (`rows`). In addition, for one row in 64
//! each thread remembers the version of its last committed update. During the run a thread must not read an
//! older value of its own. After the run each row must contain the last committed update of one of the
//! threads that wrote it.

use crate::rows::{Version, mix};
use anyhow::{Result, bail, ensure};
use std::collections::HashMap;

/// The committed updates of one thread.
pub struct Ledger {
    run: u16,
    thread: u8,
    /// Whether earlier runs have written to the store.
    aged: bool,
    last: HashMap<u64, Version>,
    updates: u64,
}

fn is_sampled(row: u64) -> bool {
    mix(row ^ 0xa5a5) & 63 == 0
}

impl Ledger {
    /// The ledger of thread `thread` in run `run`.
    pub fn new(run: u16, thread: u8, aged: bool) -> Ledger {
        Ledger { run, thread, aged, last: HashMap::new(), updates: 0 }
    }

    /// The version of the thread's next update.
    pub fn next_version(&mut self) -> Version {
        self.updates += 1;
        Version::new(self.run, self.thread, self.updates)
    }

    /// Records that the update of `row` by `version` is committed.
    pub fn committed(&mut self, row: u64, version: Version) {
        if is_sampled(row) {
            self.last.insert(row, version);
        }
    }

    /// Checks that this thread may have read `version` in `row`. At that moment each of its updates was
    /// either committed or had not begun.
    ///
    /// # Errors No thread can have written that version, or this thread has overwritten it before.
    pub fn read(&self, row: u64, version: Version) -> Result<()> {
        if version.run() != self.run {
            ensure!(
                self.aged || version == Version::LOADED,
                "row {row}: a value of a run that was never here"
            );
            // A row that this thread has updated must differ from its state before the run.
            ensure!(!self.last.contains_key(&row), "row {row}: an update was lost");
            return Ok(());
        }
        if version.thread() == self.thread {
            ensure!(version.count() <= self.updates, "row {row}: a value that was not yet written");
            let last = self.last.get(&row).map_or(0, |last| last.count());
            ensure!(version.count() >= last, "row {row}: an update was lost");
        }
        Ok(())
    }
}

/// The sampled rows that were updated, with the versions that each may contain now.
pub fn expected(ledgers: &[Ledger]) -> HashMap<u64, Vec<Version>> {
    let mut expected: HashMap<u64, Vec<Version>> = HashMap::new();
    for ledger in ledgers {
        for (&row, &version) in &ledger.last {
            expected.entry(row).or_default().push(version);
        }
    }
    expected
}

/// Checks the version `found` in `row` after the run.
///
/// # Errors It is not the last committed update of any thread.
pub fn settle(row: u64, found: Version, allowed: &[Version]) -> Result<()> {
    if !allowed.contains(&found) {
        bail!("row {row}: holds {found:?} after the run, not the last update of a thread {allowed:?}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled() -> u64 {
        (0..).find(|&row| is_sampled(row)).unwrap()
    }

    #[test]
    fn a_lost_update_is_noticed() {
        let row = sampled();
        let mut ledger = Ledger::new(7, 0, false);
        let first = ledger.next_version();
        ledger.committed(row, first);
        let second = ledger.next_version();
        ledger.committed(row, second);
        ledger.read(row, second).unwrap();
        assert!(ledger.read(row, first).is_err());
        assert!(ledger.read(row, Version::LOADED).is_err());
        // A later write of another thread is valid; a future one of this thread is not.
        ledger.read(row, Version::new(7, 1, 1)).unwrap();
        assert!(ledger.read(row, Version::new(7, 0, 3)).is_err());
    }

    #[test]
    fn values_of_other_runs_are_refused_in_a_fresh_store_only() {
        let old = Version::new(6, 0, 1);
        assert!(Ledger::new(7, 0, false).read(1, old).is_err());
        Ledger::new(7, 0, true).read(1, old).unwrap();
    }

    #[test]
    fn a_row_ends_with_the_last_update_of_a_thread() {
        let row = sampled();
        let mut ledgers = [Ledger::new(7, 0, false), Ledger::new(7, 1, false)];
        let mut versions = Vec::new();
        for ledger in &mut ledgers {
            for _ in 0..2 {
                let version = ledger.next_version();
                ledger.committed(row, version);
                versions.push(version);
            }
        }
        let expected = expected(&ledgers);
        let allowed = &expected[&row];
        settle(row, versions[1], allowed).unwrap();
        settle(row, versions[3], allowed).unwrap();
        assert!(settle(row, versions[0], allowed).is_err());
        assert!(settle(row, Version::LOADED, allowed).is_err());
    }
}
