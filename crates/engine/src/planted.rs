//! Bugs that the crash simulation must find. They exist only with the feature `planted`.

use fulgurite_base::Choice;

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// A commit returns before the drive has flushed.
    NoFlushBeforeAcknowledge,
    /// Checksums of pages are not checked.
    ChecksumIgnored,
    /// Pages are written before the log of their changes.
    DataBeforeLog,
    /// The double-write area is overwritten before the pages that it protects are durable.
    DoubleWriteAreaReusedEarly,
    /// A structure change is not redone on a page that is one change older.
    WrongLsnCompare,
    /// Recovery leaves out the last record of the log.
    LostTail,
    /// A block of the log is accepted without its checksum.
    TornLogBlockAccepted,
    /// A page is reused before the structure change that frees it is in the log.
    FreePageReusedEarly,
    /// Locks are released before the transaction is applied.
    LockReleasedEarly,
    /// The redo point is set past changes of pages that are not written yet.
    CheckpointTooNew,
    /// The redo point moves before the drive has flushed the pages.
    CheckpointWithoutFlush,
    /// Splits are not logged.
    SplitNotLogged,
    /// Readers see commits that are not durable.
    UndurableVisible,
    /// Scans lock no ranges, so phantoms appear.
    RangesNotLocked,
    /// The chain of log blocks is not checked and the rest of the area is not cleared, so old blocks are
    /// accepted.
    ChainIgnored,
    /// Pages of a failed write count as written.
    FailedWriteForgotten,
    /// The redo point moves past pending records, which are in no page.
    PendingForgotten,
    /// Records that are copied forward in the log count before their copies are durable.
    CarriedTooEarly,
    /// A segment is reused before the new addresses of its pages are durable.
    SegmentReusedEarly,
    /// The map on the drive names addresses whose pages are not durable.
    MapBeforePages,
    /// A checkpoint stops half-way if its caller is dropped.
    CheckpointGivenUp,
    /// A page is shared in parts, with several commands.
    PageSharedInParts,
    /// A flush of the log counts although an earlier one has not completed.
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
