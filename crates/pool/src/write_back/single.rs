//! Single: one read is exchanged for one write.
//!
//! What database pools do when no cleaner has run ahead ("single page flush"): the victim frame is
//! written if it is dirty, the miss waits for that, and the frame is evicted. O(1). It uses neither the
//! drive's concurrency nor its asymmetry, and is the baseline of the others.

use super::{MeasuredDrive, WriteBack};
use fulgurite_base::{NoOptions, SpecError};

pub(super) fn resolve(_: &NoOptions, _: &mut dyn MeasuredDrive) -> Result<WriteBack, SpecError> {
    Ok(WriteBack::SINGLE)
}
