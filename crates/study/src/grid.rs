//! Turns lists of settings into runs. A setting with several values is an axis of a grid, and each
//! combination of values is a cell of the grid and one run.
//!
//! The command line and study files use the same names (`--write-back single,ace`, `write_back = ["single",
//! "ace"]`), so this module reads both. The axes are ordered as in [`Command::settings`], regardless of the
//! order in which they were given. The last axis varies fastest.

use fulgurite_base::{Spec, units};
use fulgurite_stack::outlook::Outlook;
use fulgurite_stack::run_list::{RunList, Source};
use fulgurite_stack::settings::{self, Setting, Workloads};
use fulgurite_stack::workload::Workload;
use fulgurite_stack::{Command, Run, StackError};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;

/// Lists of values by the name of the setting. A setting with several values is an axis.
pub type Settings = BTreeMap<String, Vec<String>>;

/// Splits a list of values: `single,ace:n_w=8,raw` has three values. The name of an existing file is one
/// value, even if it contains commas.
pub fn values(text: &str) -> Result<Vec<String>, StackError> {
    if text.contains(',') && Path::new(text).is_file() {
        return Ok(vec![text.to_owned()]);
    }
    Ok(Spec::split_list(text)?)
}

/// Refuses a list that contains anything but seeds. Commands that ignore `--seed` call this function too.
pub fn check_seeds(text: &str) -> Result<(), StackError> {
    values(text)?.iter().try_for_each(|value| seed(value).map(drop))
}

/// Parses one seed.
pub(crate) fn seed(text: &str) -> Result<u64, StackError> {
    units::parse_count(text).map_err(|error| StackError::request(format!("--seed: {error}")))
}

/// Refuses a trace format if no workload is read from a file, because the format would have no effect.
pub(crate) fn check_format(formats: &[String], workloads: &[String]) -> Result<(), StackError> {
    if formats.is_empty() {
        return Ok(());
    }
    check_file(&format!("--format {}", formats.join(",")), workloads)
}

/// Refuses an argument about trace files if no workload is read from a file.
fn check_file(argument: &str, workloads: &[String]) -> Result<(), StackError> {
    // A name that is no workload is refused later, with a more precise message.
    let is_no_file = |text: &String| Workload::parse(text, None).is_ok_and(|workload| !workload.is_file());
    if workloads.is_empty() || !workloads.iter().all(is_no_file) {
        return Ok(());
    }
    Err(StackError::request(format!(
        "{argument} does not go with {}, which is not read from a file; accepted: a trace file, or leave it out",
        workloads.join(",")
    )))
}

/// The runs of a grid.
pub type Grid = RunList<Cells>;

/// The values from which the runs of a grid are made.
pub struct Cells {
    command: Command,
    axes: Vec<(&'static Setting, Vec<String>)>,
    size: usize,
}

/// Spans the grid of `settings`, and predicts the cost of its runs with `threads` of them in parallel. No run
/// is executed and no drive is measured. Invalid settings are refused; in a very large grid only a sample of
/// the cells is checked.
pub fn span(
    command: Command,
    settings: &Settings,
    threads: NonZeroUsize,
) -> Result<(Grid, Outlook), StackError> {
    let axes = axes(command, settings)?;
    let values = |name| settings.get(name).map_or(&[][..], Vec::as_slice);
    check_format(values("format"), values("workload"))?;
    if values("sort").iter().any(|value| value == "yes") {
        check_file("--sort", values("workload"))?;
    }
    if let [first, ..] = values("files") {
        check_file(&format!("--files {first}"), values("workload"))?;
    }
    let lengths = axes.iter().map(|(_, values)| values.len());
    let size = lengths.clone().try_fold(1usize, usize::checked_mul).ok_or_else(|| {
        StackError::request("the lists of values give too many runs to count; accepted: fewer values")
    })?;
    if let Some((setting, _)) = axes.iter().find(|(setting, _)| setting.is_recording()).filter(|_| size > 1) {
        return Err(StackError::request(format!(
            "{} records a single run, and this command has {size}; accepted: one value for every option",
            setting.flag()
        )));
    }
    RunList::new(Cells { command, axes, size }, threads)
}

impl Cells {
    /// Returns the settings of a cell as text, as the user gave them.
    pub fn asked(&self, cell: usize) -> String {
        let values = self.values(cell);
        let pairs: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{} {}", self.command.name(), pairs.join(" "))
    }

    /// Returns the value of each setting in a cell. The cell's number is read as digits, one per axis, with
    /// the last axis as the lowest digit.
    fn values(&self, mut cell: usize) -> BTreeMap<&str, &str> {
        let mut values = BTreeMap::new();
        for (setting, of_axis) in self.axes.iter().rev() {
            values.insert(setting.name, of_axis[cell % of_axis.len()].as_str());
            cell /= of_axis.len();
        }
        values
    }
}

impl Source for Cells {
    fn count(&self) -> usize {
        self.size
    }

    fn make(&self, at: usize, workloads: &mut Workloads) -> Result<Run, StackError> {
        settings::run(self.command, &self.values(at), workloads)
    }

    /// Returns the first cell for each value of each axis, so that every value is checked in a grid of any
    /// size.
    fn tried_too(&self) -> Vec<usize> {
        let mut cells = Vec::new();
        let mut stride = 1;
        for (_, values) in self.axes.iter().rev() {
            cells.extend((1..values.len()).map(|value| value * stride));
            stride *= values.len();
        }
        cells
    }
}

/// Returns the given settings with their values, in the order of the command's settings.
fn axes(command: Command, settings: &Settings) -> Result<Vec<(&'static Setting, Vec<String>)>, StackError> {
    for (name, values) in settings {
        let setting = command.setting(name)?;
        if values.is_empty() {
            let flag = setting.flag();
            return Err(StackError::request(format!(
                "{flag} has no value; accepted: a value, or leave it out"
            )));
        }
    }
    let given = command.settings().filter_map(|setting| Some((setting, settings.get(setting.name)?.clone())));
    Ok(given.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_stack::runner::Runs;

    fn settings(seeds: usize) -> Settings {
        let seeds = (1..=seeds).map(|seed| seed.to_string()).collect();
        let one = |text: &str| vec![text.to_owned()];
        let given = [
            ("workload", one("zipf")),
            ("device", one("none")),
            ("ops", one("10")),
            ("users", one("1")),
            ("replacement", vec!["lru".to_owned(), "clock".to_owned()]),
            ("seed", seeds),
        ];
        given.into_iter().map(|(name, values)| (name.to_owned(), values)).collect()
    }

    #[test]
    fn the_last_axis_varies_fastest() {
        let (grid, outlook) = span(Command::Pool, &settings(5), NonZeroUsize::MIN).unwrap();
        assert_eq!((grid.count(), outlook.runs), (10, 10));
        assert_eq!(grid.run(7).unwrap().seed, 3);
        let asked = grid.source().asked(7);
        assert!(asked.contains("replacement=clock seed=3"), "{asked}");
    }

    #[test]
    fn every_value_of_a_large_grid_is_checked_before_the_first_run() {
        // The grid has 20,002 runs, of which 10,000 are built beforehand. No evenly spaced sample of that size
        // contains this cell, so only the check of every value finds the error.
        let mut settings = settings(10_001);
        settings.get_mut("seed").unwrap()[6_667] = "nonsense".to_owned();
        let refused = span(Command::Pool, &settings, NonZeroUsize::MIN).map(drop).unwrap_err();
        assert!(refused.to_string().contains("nonsense"), "{refused}");
    }
}
