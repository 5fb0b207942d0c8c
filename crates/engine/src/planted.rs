//! Bugs that the crash simulation must find. They exist only with the feature `planted`.

use fulgurite_base::Choice;

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// A commit returns before the drive has flushed.
    NoFlushBeforeAcknowledge,
    /// Pages are not compared with their checksums.
    ChecksumIgnored,
    /// Pages are written before the log of their changes.
    DataBeforeLog,
    /// The double-write area is written again before what it protects is durable.
    DoubleWriteAreaReusedEarly,
    /// A structure change is not redone on a page that is one change behind.
    WrongLsnCompare,
    /// Recovery leaves out the last record of the log.
    LostTail,
    /// A block of the log is accepted without its checksum.
    TornLogBlockAccepted,
    /// A page is used again before the structure change that frees it is in the log.
    FreePageReusedEarly,
    /// Locks are released before the transaction is applied.
    LockReleasedEarly,
    /// The redo point is set behind pages that are not written yet.
    CheckpointTooNew,
    /// The redo point moves before the drive has flushed the pages.
    CheckpointWithoutFlush,
    /// Splits are not logged.
    SplitNotLogged,
    /// Readers see commits that are not durable.
    UndurableVisible,
    /// Scans lock no ranges, so phantoms appear.
    RangesNotLocked,
    /// The chain of blocks is not followed, and what is left over is not emptied, so blocks of an earlier life of the log are
    /// accepted.
    ChainIgnored,
    /// Pages of a failed write are taken for written.
    FailedWriteForgotten,
    /// The redo point moves past records that are in no page.
    PendingForgotten,
    /// Records that are carried along in the log count before they are durable there.
    CarriedTooEarly,
    /// A segment is written again before the places of its pages are durable.
    SegmentReusedEarly,
    /// The map on the drive names places whose pages are not durable.
    MapBeforePages,
    /// A checkpoint that nobody waits for any more is left where it is.
    CheckpointGivenUp,
    /// A page is shared to its place in parts, each with a command of its own.
    PageSharedInParts,
    /// A flush of the log counts although an earlier one has not ended.
    FlushOutOfOrder,
}

impl Choice for Planted {
    const NAMES: &'static [(&'static str, Planted)] = &[
        ("no-flush-before-acknowledge", Planted::NoFlushBeforeAcknowledge),
        ("checksum-ignored", Planted::ChecksumIgnored),
        ("data-before-log", Planted::DataBeforeLog),
        ("double-write-area-reused-early", Planted::DoubleWriteAreaReusedEarly),
        ("wrong-lsn-compare", Planted::WrongLsnCompare),
        ("lost-tail", Planted::LostTail),
        ("torn-log-block-accepted", Planted::TornLogBlockAccepted),
        ("free-page-reused-early", Planted::FreePageReusedEarly),
        ("lock-released-early", Planted::LockReleasedEarly),
        ("checkpoint-too-new", Planted::CheckpointTooNew),
        ("checkpoint-without-flush", Planted::CheckpointWithoutFlush),
        ("split-not-logged", Planted::SplitNotLogged),
        ("undurable-visible", Planted::UndurableVisible),
        ("ranges-not-locked", Planted::RangesNotLocked),
        ("chain-ignored", Planted::ChainIgnored),
        ("failed-write-forgotten", Planted::FailedWriteForgotten),
        ("pending-forgotten", Planted::PendingForgotten),
        ("carried-too-early", Planted::CarriedTooEarly),
        ("segment-reused-early", Planted::SegmentReusedEarly),
        ("map-before-pages", Planted::MapBeforePages),
        ("checkpoint-given-up", Planted::CheckpointGivenUp),
        ("page-shared-in-parts", Planted::PageSharedInParts),
        ("flush-out-of-order", Planted::FlushOutOfOrder),
    ];
}
