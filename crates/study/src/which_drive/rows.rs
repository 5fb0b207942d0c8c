//! Formats the answer as result rows: one row for each drive, for each change to a drive, and for each other
//! rate that was tried.

use super::Answer;
use super::lab::{Headroom, Measured, Ran};
use super::requirement;
use crate::table::Table;
use fulgurite_stack::{Column, Row};

/// The kinds of rows.
pub(crate) const DRIVE: &str = "drive";
pub(crate) const CHANGED: &str = "changed";
const OTHER_RATE: &str = "other rate";

impl Answer {
    /// Returns the answer as result rows. The column `kind` names the subject of each row.
    pub fn table(&self) -> Table {
        let mut rows = Vec::new();
        for drive in &self.drives {
            rows.push(self.drive(drive));
        }
        for drive in &self.drives {
            rows.extend(drive.variants.iter().map(|(name, ran)| {
                let mut row = run(CHANGED, ran);
                row.set(Column::Name, *name);
                row.set(Column::Plain, drive.drive.device.as_str());
                row
            }));
        }
        for drive in &self.drives {
            rows.extend(drive.others.iter().map(|(times, ran)| {
                let mut row = run(OTHER_RATE, ran);
                row.set(Column::Times, *times);
                row
            }));
        }
        Table { rows }
    }

    fn drive(&self, drive: &Measured) -> Row {
        let mut row = run(DRIVE, &drive.own);
        row.set(Column::Times, 1.0);
        row.set(Column::Require, requirement::in_words(&self.question.requirements));
        row.set(Column::Meets, drive.meets.name());
        row.set(Column::SustainedOpsS, drive.sustained);
        row.set(Column::Headroom, drive.headroom.times());
        if let Headroom::Holds { then, .. } = &drive.headroom {
            row.set(Column::HeadroomLimit, then.as_deref().unwrap_or("rate"));
        }
        row.set(Column::Runs, self.executed);
        row.set(Column::Note, self.note(drive));
        row
    }
}

fn run(kind: &str, ran: &Ran) -> Row {
    let mut row = ran.row.clone();
    row.set(Column::Kind, kind);
    row.set(Column::Repeat, ran.repeat.as_str());
    row
}
