//! A disk on a simulated SSD, and one request at a time: the form that deterministic simulations of other programs
//! need.

use crate::disk::Disk;
use crate::power::PowerModel;
use crate::request::{Completed, Request};
use fulgurite_base::{Nanos, Spec, SpecError};
use fulgurite_ssd::{SimDrive, preset};

/// A disk on a simulated SSD.
pub type Ssd<T> = Disk<SimDrive, T>;

impl<T> Ssd<T> {
    /// Creates a disk on the drive that `text` names, a preset with or without changes: `p4510:op=7%`. `seed` decides
    /// in which state of wear and garbage it starts.
    ///
    /// # Errors
    ///
    /// Returns in one sentence which name or option is wrong, and what is accepted.
    pub fn simulated(text: &str, model: PowerModel, seed: u64) -> Result<Ssd<T>, SpecError> {
        let config = preset::configure(Spec::parse(text)?)?;
        Ok(Disk::new(SimDrive::new(config, seed, false)?, model))
    }

    /// Executes one request that arrives at `now`, and returns its completion, which may be later than `now`. The clock
    /// stays at the completion. No other request may be in flight; several at once need [`Disk::submit`] and
    /// [`Disk::advance`].
    ///
    /// Returns `None` if others are in flight, or if the drive stalls.
    pub fn execute(&mut self, request: Request<'_>, token: T, now: Nanos) -> Option<Completed<T>> {
        if self.in_flight() > 0 {
            return None;
        }
        let mut completed = Vec::new();
        self.advance(now, &mut completed);
        self.submit(request, token);
        self.finish(&mut completed);
        completed.pop()
    }
}
