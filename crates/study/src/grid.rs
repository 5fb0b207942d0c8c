//! Makes runs from lists of settings. A setting with several values is an axis of the grid.
//!
//! The command line and study files use the same words (`--write-back single,ace`, `write_back = ["single", "ace"]`),
//! so both are read here. The last axis varies fastest. Axes have the order of [`Command::settings`], not the order in
//! which they were given.

use fulgurite_base::Spec;
use fulgurite_stack::outlook::Outlook;
use fulgurite_stack::progress;
use fulgurite_stack::runner::Runs;
use fulgurite_stack::settings::{self, Setting, Workloads};
use fulgurite_stack::{Command, Run, StackError};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

/// Settings with their values: more than one makes an axis.
pub type Settings = BTreeMap<String, Vec<String>>;

/// Cells of a grid that are all made and checked before the first run, and kept. Of a larger one each value is tried,
/// and as many cells spread evenly; the others are checked when it is their turn.
const LISTED_AT_MOST: usize = 10_000;

/// The values that `text` lists: `single,ace:n_w=8,raw` has three.
pub fn values(text: &str) -> Result<Vec<String>, StackError> {
    Ok(Spec::split_list(text)?)
}

/// The runs of a grid.
pub struct Grid {
    command: Command,
    axes: Vec<(&'static Setting, Vec<String>)>,
    size: usize,
    /// Every run, of a grid that is not too large.
    listed: Vec<Run>,
    /// Requests of all runs, and whether one of them uses a real drive.
    ops: u64,
    is_real: bool,
    /// One cache for the whole grid, so that a trace is read once and not for every run.
    workloads: Mutex<Workloads>,
}

impl Grid {
    /// The grid that `settings` span. Nothing is run or measured. A wrong request is refused, as far as a grid of this
    /// size can be looked through.
    ///
    /// Returns with it what its runs need with `threads` of them at once.
    pub fn new(
        command: Command,
        settings: &Settings,
        threads: NonZeroUsize,
    ) -> Result<(Grid, Outlook), StackError> {
        let axes = axes(command, settings)?;
        let lengths = axes.iter().map(|(_, values)| values.len());
        let size = lengths.clone().try_fold(1usize, usize::checked_mul).ok_or_else(|| {
            StackError::request("the lists of values give too many runs to count; accepted: fewer values")
        })?;
        if let Some((setting, _)) =
            axes.iter().find(|(setting, _)| setting.is_recording()).filter(|_| size > 1)
        {
            return Err(StackError::request(format!(
                "{} records a single run, and this command has {size}; accepted: one value for every option",
                setting.flag()
            )));
        }
        let mut grid = Grid {
            command,
            axes,
            size,
            listed: Vec::new(),
            ops: 0,
            is_real: false,
            workloads: Mutex::new(Workloads::dry()),
        };
        let outlook = grid.look_through(threads)?;
        Ok((grid, outlook))
    }

    /// Makes and checks the runs that are kept: from here on drives are measured where policies ask for it.
    pub fn prepare(&mut self) -> Result<(), StackError> {
        let workloads =
            std::mem::take(&mut self.workloads).into_inner().unwrap_or_else(PoisonError::into_inner);
        self.workloads = Mutex::new(workloads.wet());
        if self.size <= LISTED_AT_MOST {
            let parts = if self.size == 1 { 0 } else { self.size as u64 };
            let step = progress::step("making ready", parts);
            for cell in 0..self.size {
                let run = self.make(cell)?;
                self.listed.push(run);
                step.add(1);
            }
        }
        Ok(())
    }

    /// What the cell with this number was asked for, as typed.
    pub fn asked(&self, cell: usize) -> String {
        let values = self.cell_values(cell);
        let pairs: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{} {}", self.command.name(), pairs.join(" "))
    }

    /// Tries the cells that can be tried in time, and adds up what they need.
    fn look_through(&mut self, threads: NonZeroUsize) -> Result<Outlook, StackError> {
        let mut outlook = Outlook::new(threads);
        let sampled = self.size.min(LISTED_AT_MOST);
        let weight = self.size as f64 / sampled as f64;
        // Of one run there is no share to show.
        let parts = if sampled == 1 { 0 } else { sampled as u64 };
        let step = progress::step("looking at the runs", parts);
        let mut ops = 0.0;
        for number in 0..sampled {
            // The product of two counts may be larger than either type of count.
            let cell = (number as u128 * self.size as u128 / sampled as u128) as usize;
            let run = self.make(cell)?;
            self.is_real |= run.is_real();
            ops += run.ops() as f64 * weight;
            outlook.add(&run, weight);
            step.add(1);
        }
        if sampled < self.size {
            for cell in self.cells_with_each_value() {
                self.is_real |= self.make(cell)?.is_real();
            }
        }
        // As many requests as this come to no end anyway.
        self.ops = ops as u64;
        outlook.runs = self.size as u64;
        Ok(outlook)
    }

    /// For each value of each axis the first cell that has it.
    fn cells_with_each_value(&self) -> Vec<usize> {
        let mut cells = Vec::new();
        let mut stride = 1;
        for (_, values) in self.axes.iter().rev() {
            cells.extend((1..values.len()).map(|value| value * stride));
            stride *= values.len();
        }
        cells
    }

    fn make(&self, cell: usize) -> Result<Run, StackError> {
        let mut workloads = self.workloads.lock().unwrap_or_else(PoisonError::into_inner);
        settings::run(self.command, &self.cell_values(cell), &mut workloads)
    }

    /// The values of the cell with this number, counting with the last axis as the lowest digit.
    fn cell_values(&self, mut cell: usize) -> BTreeMap<&str, &str> {
        let mut values = BTreeMap::new();
        for (setting, of_axis) in self.axes.iter().rev() {
            values.insert(setting.name, of_axis[cell % of_axis.len()].as_str());
            cell /= of_axis.len();
        }
        values
    }
}

impl Runs for Grid {
    fn count(&self) -> usize {
        self.size
    }

    fn run(&self, at: usize) -> Result<Cow<'_, Run>, StackError> {
        match self.listed.get(at) {
            Some(run) => Ok(Cow::Borrowed(run)),
            None => self.make(at).map(Cow::Owned),
        }
    }

    fn ops(&self) -> u64 {
        self.ops
    }

    fn is_real(&self) -> bool {
        self.is_real
    }
}

/// The settings that are given, in the order of the command's.
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
    fn a_large_grid_is_made_run_by_run() {
        let (mut grid, outlook) = Grid::new(Command::Pool, &settings(10_000), NonZeroUsize::MIN).unwrap();
        grid.prepare().unwrap();
        assert_eq!((grid.count(), outlook.runs), (20_000, 20_000));
        assert!(grid.listed.is_empty(), "none of them is kept");
        assert_eq!(grid.ops(), 200_000);
        assert_eq!(grid.run(12_344).unwrap().seed, 2_345);
        assert!(grid.asked(12_344).contains("replacement=clock seed=2345"), "{}", grid.asked(12_344));
    }

    #[test]
    fn every_value_of_a_large_grid_is_tried_before_the_first_run() {
        let mut settings = settings(50_001);
        // A cell that no even sample of the grid has.
        settings.get_mut("seed").unwrap()[33_334] = "nonsense".to_owned();
        let refused = Grid::new(Command::Pool, &settings, NonZeroUsize::MIN).map(drop).unwrap_err();
        assert!(refused.to_string().contains("nonsense"), "{refused}");
    }
}
