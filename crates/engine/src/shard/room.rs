//! Divides the log space between commits, structure changes, and pending records. A pending record is one that its
//! leaf lacks; before the redo point passes it, it is appended to the log again.

use super::Shard;
use crate::{Error, Lsn};
use std::rc::Rc;

impl Shard {
    /// Returns the LSN that the redo point should reach at least, if a checkpoint is due; `None` if none is
    /// due.
    pub(crate) fn checkpoint_goal(&self) -> Option<Lsn> {
        let records = self.state.records();
        let used = self.durable.log().used();
        // Commits wait for log space once more than this is used.
        let most = self.durable.log().capacity().saturating_sub(self.log_kept());
        let kept = if records.is_log_tight() {
            // A larger part must not be freed: the newest records may be deletions, which free pages on a
            // full store.
            used / 2
        } else if used > most / 16 * 13 {
            // Frees an eighth of the log at a time. The more log is kept, the less often hot pages are
            // written and hot records are merged. A larger checkpoint would delay other requests.
            most / 16 * 11
        } else {
            return None;
        };
        Some(Lsn(self.durable.log().tail().0.saturating_sub(kept)))
    }

    /// Whether the log has space for `bytes` more, in addition to the reserved bytes and the bytes for
    /// copying all pending records forward.
    pub(crate) fn has_room_in_log(&self, bytes: u64) -> bool {
        bytes + self.log_kept() <= self.log_left()
    }

    /// Waits until the log has space for `bytes` more, and begins the checkpoints that make it.
    pub(crate) async fn until_log_fits(self: &Rc<Self>, bytes: u64) -> Result<(), Error> {
        let fits = || {
            if let Err(error) = self.health.check() {
                return Some(Err(error));
            }
            let fits = self.has_room_in_log(bytes);
            if !fits {
                self.checkpoint_later(Lsn(u64::MAX));
            } else if let Some(goal) = self.checkpoint_goal() {
                self.checkpoint_later(goal);
            }
            fits.then_some(Ok(()))
        };
        if let Some(outcome) = fits() {
            return outcome;
        }
        let began = self.handle.now();
        self.log_room.until(fits).await?;
        let waited = self.handle.now() - began;
        self.counters.count(|counts| {
            counts.log_waits += 1;
            counts.log_wait_ns += waited.0;
        });
        Ok(())
    }

    /// Returns the number of log bytes that commits may not use: enough to copy all pending records and
    /// decisions for other shards forward, and a sixteenth of the log for the structure changes of recovery, bulk
    /// loads and new tables.
    fn log_kept(&self) -> u64 {
        self.durable.log().capacity() / 16 + self.state.records().needed_log() + self.room_for_decisions()
    }

    /// Returns the number of log bytes that a split, or a merge of two nodes, takes at most.
    pub(crate) fn change_bytes(&self) -> u64 {
        3 * (u64::from(self.page_bytes()) / 2 + 1024) + 8192
    }

    /// Returns the number of log bytes that are neither used nor reserved.
    pub(crate) fn log_left(&self) -> u64 {
        self.durable.log().capacity().saturating_sub(self.durable.log().used() + self.log_room.reserved())
    }

    /// Returns the number of log bytes for copying pending records forward now. A block is deducted, because
    /// the last block of the log may not become full.
    pub(crate) fn room_to_carry(&self) -> u64 {
        self.log_left().saturating_sub(u64::from(self.durable.superblock().block_bytes))
    }
}
