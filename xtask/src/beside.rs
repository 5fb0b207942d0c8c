//! An installation that runs in parallel with the first steps, which compile while it waits for the network.

use anyhow::{Result, anyhow};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// See the module.
pub(crate) struct Beside(Mutex<Option<JoinHandle<Result<()>>>>);

impl Beside {
    /// No installation.
    pub(crate) const fn nothing() -> Beside {
        Beside(Mutex::new(None))
    }

    /// Starts the installation.
    pub(crate) fn begin(&self, install: fn() -> Result<()>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread::spawn(install));
    }

    /// Waits for the installation, if one was started.
    pub(crate) fn end(&self) -> Result<()> {
        let begun = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        begun.map_or(Ok(()), |begun| begun.join().map_err(|_| anyhow!("the installation panicked"))?)
    }
}
