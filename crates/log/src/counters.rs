//! The counters of a layer, and its self-check.

use crate::LogDevice;
use crate::command::Arriving;
use fulgurite_base::Ppn;
use fulgurite_device::{Device, IoError, MeterError, Tag};
use fulgurite_ftl::check::{self, CheckError};
use fulgurite_ftl::{FtlCounters, SegmentState};
use thiserror::Error;

/// A broken invariant that the log-structured layer has found in its own state.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs)] // each message names the fields
pub enum LogError {
    /// A law of queues (conservation or Little's law) is violated.
    #[error("log layer: {0}")]
    Meter(#[from] MeterError),
    /// An invariant of the translation layer is violated.
    #[error("log layer, FTL invariant broken: {0}")]
    Ftl(#[from] CheckError),
    /// The drive below failed to move a page during collection, or to write padding.
    #[error("log layer: a page could not be moved, so that nothing more can be written: {0}")]
    Medium(IoError),
    /// The drive below completed a command that is not in flight.
    #[error("log layer: the drive below completed {0:?}, which is not in flight")]
    Stray(Tag),
    /// The number of pages counted as lost (their writes failed) differs from the number found.
    #[error("log layer: {counted} pages are counted as lost, {found} are")]
    Lost { counted: u32, found: u32 },
    /// The number of page writes that the translation layer emitted differs from the number sent to the drive
    /// below.
    #[error("log layer: {emitted} page writes were emitted, {written} went to the drive below")]
    Writes { emitted: u64, written: u64 },
}

/// Counters of a layer since it was ready for its first request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCounters {
    /// The number of pages written by the host.
    pub host_pages: u64,
    /// The number of pages moved by collection.
    pub copied_pages: u64,
    /// The number of padding pages, written to keep the layer's segments in step with those of the drive
    /// below.
    pub padded_pages: u64,
    /// The number of segments freed.
    pub segments_freed: u64,
}

impl LogCounters {
    /// Returns the increase of each counter since `before`.
    pub fn since(&self, before: &LogCounters) -> LogCounters {
        LogCounters {
            host_pages: self.host_pages - before.host_pages,
            copied_pages: self.copied_pages - before.copied_pages,
            padded_pages: self.padded_pages - before.padded_pages,
            segments_freed: self.segments_freed - before.segments_freed,
        }
    }

    /// Returns the number of pages written to the drive below: host, copied and padding pages.
    pub fn pages_written(&self) -> u64 {
        self.host_pages + self.copied_pages + self.padded_pages
    }
}

impl<D: Device> LogDevice<D> {
    /// Returns the current counters.
    pub fn counters(&self) -> LogCounters {
        let FtlCounters { host_pages, copied_pages, erased_segments, .. } = self.ftl.counters();
        LogCounters { host_pages, copied_pages, padded_pages: self.padded, segments_freed: erased_segments }
    }

    /// Checks conservation and Little's law; that the drive below completed exactly the commands it was
    /// given; that every page could be moved; and, if no command is in flight, that all emitted pages were
    /// written. With `deep` it also checks the translation layer's invariants and the number of lost pages,
    /// in O(pages).
    pub fn verify(&self, deep: bool) -> Result<(), LogError> {
        self.meter.check()?;
        if let Some(tag) = self.stray {
            return Err(LogError::Stray(tag));
        }
        if let Some(error) = self.collection.failure {
            return Err(LogError::Medium(error));
        }
        let (emitted, written) = (self.emitted.programs + self.padded, self.pages_written);
        if self.is_idle() && emitted != written {
            return Err(LogError::Writes { emitted, written });
        }
        if deep {
            check::check(&self.ftl)?;
            let is_used =
                |ppn: u32| self.ftl.segments().state(self.ftl.segment(Ppn(ppn))) != SegmentState::Free;
            let lost = self.arriving.iter().filter(|(_, page)| matches!(page, Arriving::Lost(_)));
            let found = lost.filter(|(ppn, _)| is_used(**ppn)).count() as u32;
            if found != self.lost {
                return Err(LogError::Lost { counted: self.lost, found });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_leaves_out_earlier_counts() {
        let at = |by: u64| LogCounters {
            host_pages: 7 * by,
            copied_pages: 5 * by,
            padded_pages: 3 * by,
            segments_freed: 2 * by,
        };
        assert_eq!(at(30).since(&at(10)), at(20));
        assert_eq!(at(1).pages_written(), 7 + 5 + 3);
    }
}
