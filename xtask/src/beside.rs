//! Runs an installation in parallel with the first steps of the gate, which compile while the installation
//! waits for the network.

use anyhow::{Result, anyhow};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// An installation in a thread of its own; `None` if none was started.
pub(crate) struct Beside(Mutex<Option<JoinHandle<Result<()>>>>);

impl Beside {
    /// Creates a value without an installation.
    pub(crate) const fn nothing() -> Beside {
        Beside(Mutex::new(None))
    }

    /// Starts the installation in a thread of its own.
    pub(crate) fn begin(&self, install: impl FnOnce() -> Result<()> + Send + 'static) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread::spawn(install));
    }

    /// Waits for the installation to end, if one was started. Several steps may wait for it; the first of them gets its
    /// error.
    pub(crate) fn end(&self) -> Result<()> {
        // The lock is held until the end, so that every step waits.
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        begun.take().map_or(Ok(()), |begun| begun.join().map_err(|_| anyhow!("the installation panicked"))?)
    }
}
