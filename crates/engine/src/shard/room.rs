//! Room in the log: for commits, for structure changes, and for pending records that are carried along.

use super::Shard;
use crate::Lsn;
use fulgurite_device::Device;

impl<D: Device + 'static> Shard<D> {
    /// The place that the redo point should move to at least, if a checkpoint is due.
    pub(crate) fn checkpoint_goal(&self) -> Option<Lsn> {
        let records = self.state.records();
        let used = self.durable.log().used();
        // Commits wait for room where more is used.
        let most = self.durable.log().capacity().saturating_sub(self.log_kept());
        let kept = if records.is_log_tight() {
            // Deletions, which make room on a full store, are the newest records.
            used / 2
        } else if used > most / 16 * 13 {
            // An eighth at a time: the more is kept, the less often hot pages are written and hot records
            // merged. A larger checkpoint would make others wait.
            most / 16 * 11
        } else {
            return None;
        };
        Some(Lsn(self.durable.log().tail().0.saturating_sub(kept)))
    }

    /// Whether the log has room for so many bytes, beside what is promised and what carrying all pending
    /// records would take.
    pub(crate) fn has_room_in_log(&self, bytes: u64) -> bool {
        bytes + self.log_kept() <= self.log_left()
    }

    /// Bytes of the log that are not for commits: enough to carry all pending records, and a sixteenth for
    /// structure changes by recovery, bulk loads and new tables.
    fn log_kept(&self) -> u64 {
        self.durable.log().capacity() / 16 + self.state.records().needed_log()
    }

    /// Bytes of the log that a split takes, or two nodes that become one.
    pub(crate) fn change_bytes(&self) -> u64 {
        3 * (u64::from(self.page_bytes()) / 2 + 1024) + 8192
    }

    /// Bytes of the log that are neither used nor promised.
    pub(crate) fn log_left(&self) -> u64 {
        self.durable.log().capacity().saturating_sub(self.durable.log().used() + self.log_room.promised())
    }

    /// Bytes of the log for what is carried next; its last block may not become full.
    pub(crate) fn room_to_carry(&self) -> u64 {
        self.log_left().saturating_sub(u64::from(self.durable.superblock().block_bytes))
    }
}
