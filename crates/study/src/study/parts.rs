//! Joins the grids of a study into one list of runs.

use super::finished::Finished;
use super::ledger::{Key, Ledger};
use crate::grid::Grid;
use fulgurite_stack::runner::{Journal, Runs};
use fulgurite_stack::{Row, Run, StackError};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The version of Fulgurite that identifies a finished run. Runs of other versions are not reused.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The numbers of finished runs that an earlier attempt left in a folder.
#[derive(Clone, Copy, Debug, Default)]
pub struct Left {
    /// The number of finished runs that the study can reuse.
    pub usable: usize,
    /// The number of finished runs that the study cannot reuse.
    pub others: usize,
    /// Whether there are finished runs, and none of them belongs to this study in any version.
    pub(super) is_of_another: bool,
}

/// Grids with the names of their parts; the name is `None` in a study without parts.
#[derive(Default)]
pub(super) struct Parts<'a>(Vec<(Option<&'a str>, Grid)>);

impl<'a> Parts<'a> {
    pub(super) fn push(&mut self, name: Option<&'a str>, grid: Grid) {
        self.0.push((name, grid));
    }

    /// Builds and checks the runs that are kept in memory.
    pub(super) fn prepare(&mut self) -> Result<(), StackError> {
        self.0.iter_mut().try_for_each(|(_, grid)| grid.prepare())
    }

    /// Returns the name of the part that a run belongs to.
    pub(super) fn part(&self, at: usize) -> Option<&'a str> {
        self.find(at).0
    }

    /// Counts the finished runs in `keys` that belong to the study.
    pub(super) fn left(&self, keys: &[Key]) -> Left {
        let mut wanted: BTreeSet<(Option<&str>, String)> = BTreeSet::new();
        let asked: BTreeSet<&str> = keys.iter().map(|key| key.asked.as_str()).collect();
        for (name, grid) in self.0.iter().filter(|_| !keys.is_empty()) {
            // Looks for the text of each run in the ledger, because the ledger is usually shorter than the
            // grid.
            let texts = (0..grid.count()).map(|at| grid.source().asked(at));
            wanted.extend(texts.filter(|text| asked.contains(text.as_str())).map(|text| (*name, text)));
        }
        let is_own = |key: &&Key| wanted.contains(&(key.part.as_deref(), key.asked.clone()));
        let own = keys.iter().filter(is_own);
        let usable = own.clone().filter(|key| key.version == VERSION).count();
        Left { usable, others: keys.len() - usable, is_of_another: !keys.is_empty() && own.count() == 0 }
    }

    /// Returns the part and the grid of a run, and the run's number in that grid.
    fn find(&self, mut at: usize) -> (Option<&'a str>, &Grid, usize) {
        for (name, grid) in &self.0 {
            if at < grid.count() {
                return (*name, grid, at);
            }
            at -= grid.count();
        }
        panic!("a run that no grid has");
    }
}

impl Runs for Parts<'_> {
    fn count(&self) -> usize {
        self.0.iter().map(|(_, grid)| grid.count()).sum()
    }

    fn run(&self, at: usize) -> Result<Cow<'_, Run>, StackError> {
        let (_, grid, at) = self.find(at);
        grid.run(at)
    }

    fn ops(&self) -> u64 {
        self.0.iter().map(|(_, grid)| grid.ops()).fold(0, u64::saturating_add)
    }

    fn seconds(&self) -> f64 {
        self.0.iter().map(|(_, grid)| grid.seconds()).sum()
    }

    fn is_real(&self) -> bool {
        self.0.iter().any(|(_, grid)| grid.is_real())
    }
}

/// The runs of a study, with the sources of those that are already finished.
pub(super) struct Kept<'a> {
    pub runs: &'a Parts<'a>,
    pub ledger: &'a Ledger,
    pub finished: &'a Finished,
}

impl Kept<'_> {
    fn key(&self, at: usize, run: &Run) -> Result<Key, StackError> {
        let (part, grid, at) = self.runs.find(at);
        Ok(Key {
            version: VERSION.to_owned(),
            part: part.map(str::to_owned),
            asked: grid.source().asked(at),
            run_id: run.id()?,
        })
    }
}

impl Journal for Kept<'_> {
    fn known(&self, at: usize, run: &Run) -> Result<Option<Vec<Row>>, StackError> {
        if self.ledger.known() == 0 && self.finished.is_empty() {
            return Ok(None);
        }
        let key = self.key(at, run)?;
        let of_whole = || self.finished.rows(at, key.part.as_deref(), &key.run_id);
        Ok(self.ledger.rows(&key).or_else(of_whole))
    }

    fn finished(&self, at: usize, run: &Run, rows: &[Row]) -> Result<(), StackError> {
        self.ledger.keep(self.key(at, run)?, rows)
    }
}
