//! Joins the grids of a study into one list of runs.

use super::finished::Finished;
use super::ledger::{Key, Ledger};
use crate::grid::Grid;
use fulgurite_stack::runner::{Journal, Runs};
use fulgurite_stack::{Row, Run, StackError};
use std::borrow::Cow;

/// Grids with the names of the parts that they belong to.
#[derive(Default)]
pub(super) struct Parts<'a>(Vec<(Option<&'a str>, Grid)>);

impl<'a> Parts<'a> {
    pub fn push(&mut self, name: Option<&'a str>, grid: Grid) {
        self.0.push((name, grid));
    }

    /// Makes and checks the runs that are kept.
    pub fn prepare(&mut self) -> Result<(), StackError> {
        self.0.iter_mut().try_for_each(|(_, grid)| grid.prepare())
    }

    /// The part that a run belongs to.
    pub fn part(&self, at: usize) -> Option<&'a str> {
        self.find(at).0
    }

    /// The part and the grid of a run, and its number in that.
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

    fn is_real(&self) -> bool {
        self.0.iter().any(|(_, grid)| grid.is_real())
    }
}

/// A study's runs with those that are finished.
pub(super) struct Kept<'a> {
    pub runs: &'a Parts<'a>,
    pub ledger: &'a Ledger,
    pub finished: &'a Finished,
}

impl Kept<'_> {
    fn key(&self, at: usize, run: &Run) -> Result<Key, StackError> {
        let (part, grid, at) = self.runs.find(at);
        Ok(Key {
            version: env!("CARGO_PKG_VERSION").to_owned(),
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
