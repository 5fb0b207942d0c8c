//! Checks the rows of a scan: each row must be the next one, and none may be missing.
//!
//! While other threads insert, a new row may be returned or not. Rows that were committed before the scan
//! began must be returned.

use crate::engine::Session;
use crate::rows::{Rows, SLOTS};
use anyhow::{Result, ensure};

/// A scan, or several scans that continue each other.
pub struct Course {
    rows: Rows,
    /// All turns below this were committed when the scan began.
    committed: u64,
    /// The number of slots per gap that may contain committed rows. The others need no check.
    slots: u64,
    /// The first position that the scan has not passed.
    next: u64,
    passed: u64,
}

impl Course {
    /// A scan from `row` on. `committed` was read before the scan began.
    pub fn new(rows: Rows, row: u64, committed: u64) -> Course {
        let slots = 1 + committed.saturating_sub(rows.loaded()).div_ceil(rows.loaded());
        Course { rows, committed, slots, next: rows.position(row), passed: 0 }
    }

    /// Records that the scan has returned `key`, and returns its row.
    ///
    /// # Errors The key was never written, is not behind the previous one, or a row in between is missing.
    pub fn pass(&mut self, key: &[u8]) -> Result<u64> {
        let row = self.rows.row(key)?;
        let position = self.rows.position(row);
        ensure!(position >= self.next, "a scan goes back to row {row}");
        self.nothing_is_missing(position)?;
        self.next = position + 1;
        self.passed += 1;
        Ok(row)
    }

    /// Records that the scan has ended after `found` of `wanted` rows. Fewer rows are valid only at the end
    /// of the table.
    ///
    /// # Errors The number of rows is wrong.
    pub fn finish(&self, found: usize, wanted: usize) -> Result<()> {
        ensure!(found as u64 == self.passed, "a scan gives {} rows and says {found}", self.passed);
        ensure!(found <= wanted, "a scan for {wanted} rows gives {found}");
        if found == wanted { Ok(()) } else { self.nothing_is_missing(self.rows.room()) }
    }

    /// Checks that no required row is missing from the next position up to `end`.
    fn nothing_is_missing(&self, end: u64) -> Result<()> {
        let mut position = self.next;
        while position < end {
            let slot = position % SLOTS;
            if slot < self.slots {
                let row = self.rows.at(position);
                ensure!(self.rows.turn(row) >= self.committed, "a scan leaves out row {row}");
                position += 1;
            } else {
                position += SLOTS - slot;
            }
        }
        Ok(())
    }
}

/// Scans the whole table: it must contain each row of a turn below `committed` with a correct value, and no
/// other row.
///
/// # Errors A row is missing, wrong or unexpected.
pub fn whole(session: &mut dyn Session, rows: Rows, committed: u64) -> Result<()> {
    const PART: usize = 1000;
    let mut course = Course::new(rows, 0, committed);
    loop {
        let before = course.passed;
        let from = rows.key(rows.at(course.next));
        let found = session.scan(&from, PART, &mut |key, value| {
            let row = course.pass(key)?;
            rows.check(row, value).map(drop)
        })?;
        ensure!(course.passed - before == found as u64, "a scan gives other rows than it says");
        if found < PART || course.next == rows.room() {
            course.nothing_is_missing(rows.room())?;
            ensure!(course.passed == committed, "{} rows, and {committed} were inserted", course.passed);
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOADED: u64 = 1000;

    /// Scans from row 0 over the positions for which `is_there` is true, with `committed` turns and `wanted`
    /// rows.
    fn scan(committed: u64, wanted: usize, is_there: impl Fn(u64) -> bool) -> Result<()> {
        let rows = Rows::new(LOADED);
        let mut course = Course::new(rows, 0, committed);
        let found: Vec<u64> = (0..rows.room()).filter(|&position| is_there(position)).take(wanted).collect();
        for &position in &found {
            course.pass(&rows.key(rows.at(position)))?;
        }
        course.finish(found.len(), wanted)
    }

    fn turn_at(position: u64) -> u64 {
        let rows = Rows::new(LOADED);
        rows.turn(rows.at(position))
    }

    #[test]
    fn rows_that_were_committed_before_must_be_there_and_others_may() {
        let committed = LOADED + 300;
        let sound = |position| turn_at(position) < committed;
        // Rows that were inserted during the scan: some are returned.
        let ahead = |position| sound(position) || turn_at(position) < committed + 900 && position % 3 == 0;
        for wanted in [1, 100, 5000] {
            scan(committed, wanted, sound).unwrap();
            scan(committed, wanted, ahead).unwrap();
        }
        let rows = Rows::new(LOADED);
        for missing in [0, 5, LOADED - 1, LOADED, LOADED + 299] {
            let without = |position| sound(position) && rows.at(position) != missing;
            assert!(scan(committed, 5000, without).is_err(), "{missing}");
        }
    }

    #[test]
    fn a_scan_that_ends_early_or_goes_back_is_refused() {
        assert!(scan(LOADED, 5000, |position| position % SLOTS == 0 && position < 990 * SLOTS).is_err());
        let rows = Rows::new(LOADED);
        let mut course = Course::new(rows, 5, LOADED);
        course.pass(&rows.key(5)).unwrap();
        assert!(course.pass(&rows.key(5)).is_err());
        assert!(course.finish(2, 5).is_err());
    }

    /// While a store is being loaded, it contains the rows of the first turns.
    #[test]
    fn an_unfinished_load_has_the_rows_of_the_first_turns() {
        let committed = 400;
        scan(committed, 5000, |position| turn_at(position) < committed).unwrap();
        let last = Rows::new(LOADED).nth(399);
        let without = |position| turn_at(position) < committed && position != last * SLOTS;
        assert!(scan(committed, 5000, without).is_err());
    }
}
