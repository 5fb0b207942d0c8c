//! An installation that runs beside the first steps: they compile, and it mostly waits for the network.

use anyhow::{Result, anyhow};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// See the module.
pub struct Beside(Mutex<Option<JoinHandle<Result<()>>>>);

impl Beside {
    /// Nothing is installed yet.
    pub const fn nothing() -> Beside {
        Beside(Mutex::new(None))
    }

    /// Begins to install.
    pub fn begin(&self, install: fn() -> Result<()>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread::spawn(install));
    }

    /// Waits until what was begun, if anything, has ended.
    pub fn end(&self) -> Result<()> {
        let begun = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        begun.map_or(Ok(()), |begun| begun.join().map_err(|_| anyhow!("the installation panicked"))?)
    }
}
