//! Where pages are written, and what protects them: the seam between the pool and the drive.
//!
//! [`Pages`] is what the pool sees. It seals a page with its checksum, waits until the log of its changes is durable, and notes
//! how far each changed page is behind the log, which is what checkpoints go by. Where the page goes is a [`Place`]: in place,
//! at its own number, protected as [`TornPages`](crate::TornPages) says; or out of place, where a map says.

mod bound;
mod changed;
mod sealed;
mod double_write;
mod in_place;
pub mod out_of_place;
mod place;
mod pages;

use crate::Error;
use crate::wait::together;
use fulgurite_device::Operation;

pub use double_write::{Area, restore_torn};
pub use in_place::InPlace;
pub use pages::Pages;
pub use place::Place;
pub use sealed::{Sealed, is_there};

/// Performs all of `commands`, at most `at_once` of them at any time. A batch that is sent as a whole would stand before
/// reads and commits in the drive, and nobody waits for it.
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
