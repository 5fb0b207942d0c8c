//! Resolves settings that depend on the measured concurrency of the drive: k_r reads and k_w writes at once.

use crate::StackError;
use crate::profile;
use crate::run::{ChosenWriteBack, Stack};
use fulgurite_base::SpecError;
use fulgurite_pool::WriteBackConfig;
use fulgurite_pool::write_back::{Curve, MeasuredDrive};

/// Assumed numbers of concurrent reads and writes of a drive that must not be measured.
const USUAL_K_R: u32 = 64;
const USUAL_K_W: u32 = 8;

/// The device that a write-back policy may measure to find its batch size.
pub(super) struct Measured<'a> {
    pub stack: &'a Stack,
    pub page_bytes: u32,
    pub seed: u64,
    /// Whether assumed numbers replace measurements, because nothing may be executed.
    pub is_dry: bool,
}

impl ChosenWriteBack {
    /// Computes the parameters of `policy` for a drive, and measures the drive if the policy needs that.
    pub(super) fn on(policy: WriteBackConfig, drive: Measured) -> Result<ChosenWriteBack, StackError> {
        let batches = policy.resolve(drive);
        let batches = batches.map_err(|error| StackError::request(format!("--write-back: {error}")))?;
        Ok(ChosenWriteBack { policy, batches })
    }
}

impl Measured<'_> {
    fn refused(&self, what: &str) -> Result<(), SpecError> {
        if self.stack.device.is_none() {
            return Err(SpecError::new(format!(
                "{what} is measured on the drive, and device none is no drive; accepted: ace:n_w=8"
            )));
        }
        Ok(())
    }

    /// Returns k_r: the least number of concurrent reads at which the drive reaches 95 % of its read
    /// throughput.
    pub(super) fn k_r(&mut self) -> Result<u32, SpecError> {
        if self.is_dry {
            return Ok(USUAL_K_R);
        }
        let plateau = profile::plateau(self.stack, self.page_bytes, false, self.seed);
        plateau.map(|reads| reads.k).map_err(|error| SpecError::new(error.to_string()))
    }
}

impl MeasuredDrive for Measured<'_> {
    fn k_w(&mut self) -> Result<u32, SpecError> {
        self.refused("n_w")?;
        if self.is_dry {
            return Ok(USUAL_K_W);
        }
        let plateau = profile::plateau(self.stack, self.page_bytes, true, self.seed);
        plateau.map(|writes| writes.k).map_err(|error| SpecError::new(error.to_string()))
    }

    fn curves(&mut self) -> Result<[Curve; 2], SpecError> {
        self.refused("everything in auto")?;
        if self.is_dry {
            let curve: Curve = vec![(1, 1.0), (USUAL_K_W, f64::from(USUAL_K_W))];
            return Ok([curve.clone(), curve]);
        }
        let profile = profile::profile(self.stack, self.page_bytes, self.seed);
        let profile = profile.map_err(|error| SpecError::new(error.to_string()))?;
        Ok([profile.reads.curve, profile.writes.curve])
    }
}
