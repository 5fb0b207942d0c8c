//! Injected faults: bugs of the store that the crash simulation must detect. They exist only with the feature
//! `planted`.

use fulgurite_base::Choice;

/// A fault that can be injected into the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// A commit returns before the drive has flushed its log record.
    NoFlushBeforeAcknowledge,
    /// Checksums of pages are not verified.
    ChecksumIgnored,
    /// Pages are written before the log of their changes, which breaks write-ahead logging.
    DataBeforeLog,
    /// The double-write area is overwritten before the pages that it protects are durable.
    DoubleWriteAreaReusedEarly,
    /// A structure change is not redone on a page that is one change older.
    WrongLsnCompare,
    /// Recovery does not redo the last record of the log.
    LostTail,
    /// A block of the log is accepted without a check of its checksum.
    TornLogBlockAccepted,
    /// A page is allocated again before the structure change that frees it is in the log.
    FreePageReusedEarly,
    /// The locks of a transaction are released before its operations are applied.
    LockReleasedEarly,
    /// The redo point moves past changes to dirty pages that are not written yet.
    CheckpointTooNew,
    /// The redo point moves before the drive has flushed the written pages.
    CheckpointWithoutFlush,
    /// Structure changes that split a node are not logged.
    SplitNotLogged,
    /// Readers see commits that are not durable.
    UndurableVisible,
    /// Scans lock no ranges, so phantoms are possible.
    RangesNotLocked,
    /// Recovery does not check the chain of log blocks and does not clear the rest of the log area, so old
    /// blocks are accepted.
    ChainIgnored,
    /// Pages count as written although their write failed.
    FailedWriteForgotten,
    /// The redo point moves past pending records, which are in no page.
    PendingForgotten,
    /// The redo point moves past commits that are not applied yet.
    UnappliedForgotten,
    /// The redo point may move past log records that are copied forward before their copies are durable.
    CarriedTooEarly,
    /// A segment is overwritten before the new addresses of the pages that it contained are durable.
    SegmentReusedEarly,
    /// The map on the drive names addresses whose pages are not durable.
    MapBeforePages,
    /// A checkpoint stops half-way if its caller is dropped.
    CheckpointGivenUp,
    /// A page is remapped with several share commands, so a power cut can tear it.
    PageSharedInParts,
    /// A flush of the log counts as complete although an earlier flush has not completed.
    FlushOutOfOrder,
    /// The redo point moves past the records of deltas that are not durable.
    DeltaForgotten,
    /// The prepared sides of a transaction of several shards finish before the decision is durable.
    DecisionNotAwaited,
    /// The opening of several shards does not end the transactions that are in doubt.
    DoubtForgotten,
    /// The opening of several shards commits all transactions that are in doubt.
    PresumedCommitted,
    /// The redo point moves past prepared transactions that are not decided.
    PreparedForgotten,
    /// A coordinator does not keep the decisions that other shards have not logged durably.
    DecisionForgotten,
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
        ("unapplied-forgotten", Planted::UnappliedForgotten),
        ("carried-too-early", Planted::CarriedTooEarly),
        ("segment-reused-early", Planted::SegmentReusedEarly),
        ("map-before-pages", Planted::MapBeforePages),
        ("checkpoint-given-up", Planted::CheckpointGivenUp),
        ("page-shared-in-parts", Planted::PageSharedInParts),
        ("flush-out-of-order", Planted::FlushOutOfOrder),
        ("delta-forgotten", Planted::DeltaForgotten),
        ("decision-not-awaited", Planted::DecisionNotAwaited),
        ("doubt-forgotten", Planted::DoubtForgotten),
        ("presumed-committed", Planted::PresumedCommitted),
        ("prepared-forgotten", Planted::PreparedForgotten),
        ("decision-forgotten", Planted::DecisionForgotten),
    ];
}
