//! Writes pages; this module is the seam between the pool and the drive.
//!
//! [`Pages`] implements the pool's page store. It adds the checksum to a page, waits until the log of the
//! page's changes is durable, and tracks dirty pages for checkpoints. A [`Backend`] then writes the page:
//! either in place, protected according to [`TornPages`](crate::TornPages), or out of place, with a map from
//! pages to addresses.

mod bound;
mod dirty;
mod sealed;
mod in_flight;
mod double_write;
mod in_place;
pub(crate) mod out_of_place;
mod backend;
mod pages;

use crate::Error;
use crate::wait::together;
use fulgurite_device::Operation;

pub(crate) use backend::Backend;
pub(crate) use double_write::{Area, restore_torn};
pub(crate) use in_place::InPlace;
pub(crate) use pages::Pages;
pub(crate) use sealed::{Sealed, is_there};

/// Executes all of `commands`, at most `at_once` concurrently. If a batch was submitted as a whole, reads and
/// log writes of commits would wait behind it in the drive, although nobody waits for the batch.
async fn a_few_at_once(
    commands: &[Operation],
    at_once: usize,
    perform: impl AsyncFn(&Operation) -> Result<(), Error>,
) -> Result<(), Error> {
    let lanes = at_once.clamp(1, commands.len().max(1));
    let lane = async |lane: usize| {
        let mut outcome = Ok(());
        for command in commands.iter().skip(lane).step_by(lanes) {
            outcome = outcome.and(perform(command).await);
        }
        outcome
    };
    together((0..lanes).map(lane).collect()).await.into_iter().collect()
}
