//! The access of a handle to one shard of a [`Db`](super::Db).

use super::asking::GoesOn;
use super::confined::Confined;
use super::driving::Driving;
use super::inside::{Inside, Slot};
use super::jobs::Broken;
use super::primitives::Fair;
use crate::format::page::node::longest_key;
use crate::{Error, Options};
use fulgurite_device::Device;
use std::future::Future;
use std::sync::PoisonError;

/// A shard, together with the cancellation function of a handle.
pub(super) struct Seat<'a> {
    pub cell: &'a Cell,
    pub goes_on: Option<&'a GoesOn>,
}

impl Seat<'_> {
    /// Calls [`Cell::at_once`].
    pub(super) fn at_once<T: Send>(&self, work: impl FnOnce(&mut Inside) -> T + Send) -> Result<T, Error> {
        self.cell.at_once(work)
    }

    /// Calls [`Cell::run`].
    pub(super) fn run<T, W, F>(&self, work: W) -> Result<T, Error>
    where
        T: Send + 'static,
        W: FnOnce(&mut Inside) -> Result<F, Error> + Send,
        F: Future<Output = Result<T, Error>> + 'static,
    {
        self.cell.run(self.goes_on, false, work)
    }

    /// Does the same for work that waits for the log: the thread may execute the commands of the log itself.
    pub(super) fn commit<T, W, F>(&self, work: W) -> Result<T, Error>
    where
        T: Send + 'static,
        W: FnOnce(&mut Inside) -> Result<F, Error> + Send,
        F: Future<Output = Result<T, Error>> + 'static,
    {
        self.cell.run(self.goes_on, true, work)
    }
}

/// A shard that any thread may use.
pub(super) struct Cell {
    driving: Driving<Confined<Inside>, Fair>,
    /// The length of the longest key that fits into a page of the shard, in bytes.
    pub longest_key: usize,
}

impl Cell {
    /// Creates or opens a store, and calls `first` before any other thread can use it.
    pub(super) fn new<T: Send>(
        device: impl Device + Send + 'static,
        options: Options,
        create: bool,
        first: impl FnOnce(&Inside) -> Result<T, Error> + Send,
    ) -> Result<(Cell, T), Error> {
        let park = device.parker();
        let mut inside = Confined::make(move || Inside::begin(device, options, create))?;
        let first = inside.with(|inside| first(inside))?;
        let longest_key = longest_key(inside.look(|inside| inside.store.page_bytes()));
        Ok((Cell { driving: Driving::new(inside, park), longest_key }, first))
    }

    /// Runs `work`, which never waits.
    pub(super) fn at_once<T: Send>(&self, work: impl FnOnce(&mut Inside) -> T + Send) -> Result<T, Error> {
        let outcome = self.driving.call(None, |core, _| Some(core.with(work)));
        outcome.map_err(broken)?.ok_or_else(|| broken(Broken))
    }

    /// Runs the future that `work` creates to completion, and drives the shard while the future waits. Drops
    /// the future if `goes_on` returns false.
    pub(super) fn run<T, W, F>(&self, goes_on: Option<&GoesOn>, for_log: bool, work: W) -> Result<T, Error>
    where
        T: Send + 'static,
        W: FnOnce(&mut Inside) -> Result<F, Error> + Send,
        F: Future<Output = Result<T, Error>> + 'static,
    {
        let mut slot: Option<Slot<T>> = None;
        let outcome = self.driving.call(goes_on, |core, job| {
            core.with(|inside| match work(inside) {
                Ok(future) => inside.start(future, job, for_log, &mut slot),
                Err(error) => Some(Err(error)),
            })
        });
        match outcome.map_err(broken)? {
            Some(result) => result,
            None => {
                let late = slot.and_then(|slot| slot.lock().unwrap_or_else(PoisonError::into_inner).take());
                late.unwrap_or(Err(Error::GivenUp))
            }
        }
    }

    /// Runs the keeper of the shard; see [`Keeper::run`](super::Keeper::run).
    pub(super) fn keep(&self) {
        self.driving.keep();
    }

    /// Makes the keeper return.
    pub(super) fn stop_keeper(&self) {
        self.driving.stop_keeper();
    }

    /// Completes all pending work.
    pub(super) fn finish(&self) {
        self.driving.finish();
    }
}

fn broken(_: Broken) -> Error {
    Error::Fatal("a thread panicked in the shard, or its device violated its contract".to_owned())
}
