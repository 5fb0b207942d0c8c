//! Formats the answer for people: one sentence, a table of the drives, a table of what would help, remarks on
//! the certainty, and the command to repeat each drive's run.

use super::Answer;
use super::lab::{Headroom, Measured, keeps_up, offered};
use super::requirement::{self, Meets, Requirement, years};
use crate::advise::{continued, listed};
use crate::people::fit::{Shown, fitted};
use crate::people::{humane, wrapped};
use fulgurite_stack::{Column, Row, Value};

impl Answer {
    /// Returns the answer in lines of at most `width` characters, with bold headings if colours are enabled.
    pub fn text(&self, width: usize, has_colours: bool) -> String {
        let mut text = wrapped(&self.sentence(), width) + "\n";
        text += &self.drives_shown(width, has_colours);
        if self.drives.iter().any(|drive| !drive.variants.is_empty()) {
            text += "\nWhat would help, at the same rate:\n";
            text += &self.variants_shown(width, has_colours);
        }
        text.push('\n');
        for note in self.notes() {
            text += &wrapped(&note, width);
        }
        text += "\nRepeat it:\n";
        for drive in &self.drives {
            text += &continued(&drive.own.repeat, width);
        }
        text
    }

    /// Returns the recommendation in one sentence.
    pub(crate) fn sentence(&self) -> String {
        let requirements = requirement::in_words(&self.question.requirements);
        let situation = format!("For {} with {requirements}", self.load());
        let of = |meets: Meets| self.drives.iter().filter(move |drive| drive.meets == meets);
        let Some(best) = self.drives.first().filter(|drive| drive.meets >= Meets::Likely) else {
            let why: Vec<String> =
                self.drives.iter().map(|drive| format!("{} ({})", name(drive), self.missed(drive))).collect();
            let nearest = self
                .drives
                .first()
                .filter(|drive| drive.headroom.times() > 0.0)
                .map(|drive| format!(" The nearest is {}: it {}.", name(drive), headroom(drive)));
            let nearest = nearest.unwrap_or_default();
            return format!("{situation}: none of these drives will do: {}.{nearest}", listed(&why));
        };
        let take = match best.meets {
            Meets::Yes => format!("take {}", name(best)),
            _ => format!("{} is the most likely to do", name(best)),
        };
        let mut text = format!("{situation}: {take}: {}.", self.figures(best));
        let also: Vec<String> = of(best.meets).skip(1).map(name).collect();
        if !also.is_empty() {
            let does = if also.len() == 1 { "does" } else { "do" };
            text += &format!(" So {does} {}, with less headroom.", listed(&also));
        }
        let fail: Vec<String> = self
            .drives
            .iter()
            .filter(|drive| drive.meets < Meets::Likely)
            .map(|drive| format!("{} ({})", name(drive), self.missed(drive)))
            .collect();
        if !fail.is_empty() {
            text += &format!(" Not {}.", listed(&fail));
        }
        text
    }

    /// Describes the workload and its rate.
    fn load(&self) -> String {
        let Some(row) = self.drives.first().map(|drive| &drive.own.row) else { return String::new() };
        let count = |column| row.number(column).unwrap_or(0.0);
        let (reads, writes) = (count(Column::Reads), count(Column::Writes));
        format!(
            "{} ({}, {} reads)",
            row.text(Column::Workload),
            humane(Column::ThroughputOpsS, &Value::Real(offered(row))),
            percent(reads / (reads + writes).max(1.0))
        )
    }

    /// Returns the figures of a drive that are required, and its headroom.
    fn figures(&self, drive: &Measured) -> String {
        let mut figures: Vec<String> = self
            .question
            .requirements
            .iter()
            .filter_map(|one| Some(format!("{} {}", one.in_words(), shown(one, one.value(&drive.own.row)?))))
            .collect();
        if !self.question.requirements.iter().any(Requirement::is_of_headroom) {
            figures.push(headroom(drive));
        }
        listed(&figures)
    }

    /// Returns the figures that a drive misses.
    fn missed(&self, drive: &Measured) -> String {
        if !keeps_up(&drive.own.row) {
            return format!(
                "it serves {}",
                humane(
                    Column::ThroughputOpsS,
                    &Value::Real(drive.own.row.number(Column::ThroughputOpsS).unwrap_or(0.0))
                )
            );
        }
        let judged = self.question.requirements.iter().zip(&drive.judged);
        let missed = judged.filter(|(_, meets)| **meets < Meets::Likely);
        let texts: Vec<String> = missed
            .filter_map(|(one, _)| {
                Some(format!("{} {}", one.in_words(), shown(one, one.value(&drive.own.row)?)))
            })
            .collect();
        listed(&texts)
    }

    fn drives_shown(&self, width: usize, has_colours: bool) -> String {
        let column = |head: &str, is_text: bool, cell: &dyn Fn(&Measured) -> String| Shown {
            head: head.to_owned(),
            cells: self.drives.iter().map(|drive| (cell(drive), false)).collect(),
            is_text,
        };
        let number = |drive: &Measured, column: Column| figure(&drive.own.row, column);
        let columns = vec![
            column("drive", true, &name),
            column("meets it", true, &|drive| drive.meets.name().to_owned()),
            column("headroom", false, &|drive| format!("{}x", digits(drive.headroom.times()))),
            column("sustains", false, &|drive| humane(Column::ThroughputOpsS, &Value::Real(drive.sustained))),
            column("p99", false, &|drive| number(drive, Column::LatencyP99Ns)),
            column("worst eighth", false, &|drive| number(drive, Column::LatencyP99SliceMaxNs)),
            column("p99.9", false, &|drive| number(drive, Column::LatencyP999Ns)),
            column("waf", false, &|drive| number(drive, Column::Waf)),
            column("years", false, &|drive| years(&drive.own.row).map_or_else(|| "–".to_owned(), digits)),
            column("reads p50", false, &|drive| number(drive, Column::ReadLatencyP50Ns)),
            column("reads p99", false, &|drive| number(drive, Column::ReadLatencyP99Ns)),
            column("writes p50", false, &|drive| number(drive, Column::WriteLatencyP50Ns)),
            column("writes p99", false, &|drive| number(drive, Column::WriteLatencyP99Ns)),
        ];
        fitted(columns, 5, width, has_colours).0
    }

    fn variants_shown(&self, width: usize, has_colours: bool) -> String {
        let rows: Vec<(&Measured, String, &Row)> = self
            .drives
            .iter()
            .flat_map(|drive| {
                let changed =
                    drive.variants.iter().map(move |(what, ran)| (drive, (*what).to_owned(), &ran.row));
                std::iter::once((drive, "as it is".to_owned(), &drive.own.row)).chain(changed)
            })
            .collect();
        let column = |head: &str, is_text: bool, cell: &dyn Fn(&(&Measured, String, &Row)) -> String| Shown {
            head: head.to_owned(),
            cells: rows.iter().map(|row| (cell(row), false)).collect(),
            is_text,
        };
        let columns = vec![
            column("drive", true, &|(drive, what, _)| {
                if what == "as it is" { name(drive) } else { String::new() }
            }),
            column("changed", true, &|(_, what, _)| what.clone()),
            column("p99", false, &|(_, _, row)| figure(row, Column::LatencyP99Ns)),
            column("p99.9", false, &|(_, _, row)| figure(row, Column::LatencyP999Ns)),
            column("waf", false, &|(_, _, row)| figure(row, Column::Waf)),
            column("years", false, &|(_, _, row)| years(row).map_or_else(|| "–".to_owned(), digits)),
            column("energy/page", false, &|(_, _, row)| {
                let energy = row.number(Column::EnergyPerPageWrittenUj);
                energy.map_or_else(|| "–".to_owned(), |energy| format!("{} µJ", digits(energy)))
            }),
        ];
        fitted(columns, 5, width, has_colours).0
            + &wrapped(
                "20 % unused: a fifth of the drive is never written. placement: a drive, or a host with FDP, that \
                 keeps pages of different lives apart (SepBIT). the rest trimmed: the drive holds nothing but the \
                 pages of this workload.",
                width,
            )
    }

    /// Returns the remarks that follow the tables.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!(
            "How sure: {} runs, each in the drive's steady state under this workload. yes: also in the worst eighth \
             of the workload, and if the drive is as much slower than its twin as it was at any measured rate. \
             likely: as simulated, but not that surely.",
            self.executed
        )];
        notes.extend(self.drives.iter().map(|drive| self.note(drive)));
        if self.question.requirements.iter().any(Requirement::is_of_wear) {
            notes.push(
                "Of these twins only 7450-max was compared with a drive's own count of write amplification, within \
                 1 %. Years are those until the flash is worn out or the maker's rating is used up."
                    .to_owned(),
            );
        }
        notes
    }

    /// Returns a remark that says how far a measured drive is from this one.
    pub(super) fn note(&self, drive: &Measured) -> String {
        let name = name(drive);
        let mut note = match &drive.bounds {
            None => {
                format!("{name}: nobody has compared its response times under load with those of a drive.")
            }
            Some(bounds) => {
                let of = |[least, most]: [f64; 2]| format!("{} to {}", digits(least), digits(most));
                format!(
                    "{name}: at the rates that it sustained, the drive's p99 was {} times the twin's for reads and {} \
                     times for writes (p50: {} and {}).",
                    of(bounds.read_p99),
                    of(bounds.write_p99),
                    of(bounds.read_p50),
                    of(bounds.write_p50)
                )
            }
        };
        for (what, why) in &drive.drive.left_out {
            note += &format!(" {what} is left out: {why}.");
        }
        note
    }
}

fn headroom(drive: &Measured) -> String {
    match &drive.headroom {
        Headroom::Holds { times, then } => {
            let limit = then.as_deref().unwrap_or("the rate that it sustains");
            format!("holds up to {} times this load, limited by {limit}", digits(*times))
        }
        Headroom::Never => "holds at no rate".to_owned(),
    }
}

fn name(drive: &Measured) -> String {
    drive.drive.device.clone()
}

fn figure(row: &Row, column: Column) -> String {
    row.get(column).map_or_else(|| "–".to_owned(), |value| humane(column, value))
}

/// Formats a required figure.
fn shown(one: &Requirement, value: f64) -> String {
    one.column().map_or_else(|| digits(value), |column| humane(column, &Value::Real(value)))
}

/// Formats a number with about three significant digits.
fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 1e3 => Value::Integer(value.round() as u64).readable(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}
