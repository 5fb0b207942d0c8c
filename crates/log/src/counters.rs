//! Counts what a layer did, and checks it.

use crate::LogDevice;
use crate::command::Arriving;
use fulgurite_base::Ppn;
use fulgurite_device::{Device, IoError, MeterError, Tag};
use fulgurite_ftl::check::{self, CheckError};
use fulgurite_ftl::{FtlCounters, SegmentState};
use thiserror::Error;

/// Something that the layer found wrong with itself.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LogError {
    /// A law of queues.
    #[error("log layer: {0}")]
    Meter(#[from] MeterError),
    /// An invariant of its translation layer.
    #[error("log layer, FTL invariant broken: {0}")]
    Ftl(#[from] CheckError),
    /// The medium failed under collection.
    #[error("log layer: a page could not be moved, so that nothing more can be written: {0}")]
    Medium(IoError),
    /// The drive below has completed a command that it was not given.
    #[error("log layer: the drive below completed {0:?}, which is not in flight")]
    Stray(Tag),
    /// It has lost count of the pages that never arrived.
    #[error("log layer: {counted} pages are counted as lost, {found} are")]
    Lost {
        /// Those that it counts.
        counted: u32,
        /// Those that are known to be lost, in segments that are in use.
        found: u32,
    },
    /// What it emitted and what it has written differ.
    #[error("log layer: {emitted} page writes were emitted, {written} went to the drive below")]
    Writes {
        /// By the translation layer.
        emitted: u64,
        /// To the drive below.
        written: u64,
    },
}

/// What a layer has done since it was ready for its first request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCounters {
    /// Pages written by the host.
    pub host_pages: u64,
    /// Pages moved by collection.
    pub copied_pages: u64,
    /// Pages that hold nothing, written to keep segments in step with those of the drive below.
    pub padded_pages: u64,
    /// Segments given back.
    pub segments_freed: u64,
}

impl LogCounters {
    /// What has been done since these were the counters.
    pub fn since(&self, before: &LogCounters) -> LogCounters {
        LogCounters {
            host_pages: self.host_pages - before.host_pages,
            copied_pages: self.copied_pages - before.copied_pages,
            padded_pages: self.padded_pages - before.padded_pages,
            segments_freed: self.segments_freed - before.segments_freed,
        }
    }

    /// Pages written to the drive below.
    pub fn pages_written(&self) -> u64 {
        self.host_pages + self.copied_pages + self.padded_pages
    }
}

impl<D: Device> LogDevice<D> {
    /// What the layer has done.
    pub fn counters(&self) -> LogCounters {
        let FtlCounters { host_pages, copied_pages, erased_segments, .. } = self.ftl.counters();
        LogCounters { host_pages, copied_pages, padded_pages: self.padded, segments_freed: erased_segments }
    }

    /// Checks conservation and Little's law; that the drive below has completed what it was asked and nothing else;
    /// that no page was stuck; that what was emitted was written, once nothing is under way; with `deep`, the
    /// translation layer's invariants and the count of lost pages too, in O(pages).
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
    fn what_was_done_since_leaves_out_what_was_done_before() {
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
