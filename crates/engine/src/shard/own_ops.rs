//! Operations of the engine's own: on the catalogue, and on pieces of large values that belong to no record. No
//! transaction locks their keys. So the caller keeps others away from the keys until the operations are applied.

use crate::format::log_record::{Entry, Op};
use crate::shard::Shard;
use crate::shard::tree::Applied;
use crate::wait::insist;
use crate::{Error, Lsn};

impl Shard {
    /// Appends operations to the log, which must have space for them. `waits_for_log` says whether they must be
    /// durable before later commits are visible. Returns where their log record begins and ends.
    pub(crate) fn append_own(&self, ops: &[Op], waits_for_log: bool) -> (Lsn, Lsn) {
        let (since, lsn) = self.durable.log().append(&Entry::of_ops(ops.to_vec()));
        self.transactions.commits_mut().append(since, lsn, waits_for_log);
        (since, lsn)
    }

    /// Applies operations that are in the log. The caller runs to its end.
    pub(crate) async fn apply_own(&self, ops: &[Op], (since, lsn): (Lsn, Lsn)) -> Result<(), Error> {
        let at = Applied { since, lsn, keep_old: false };
        for op in ops {
            let applied = insist(async || self.apply(self.tree(op.tree)?, op, at).await);
            if let Err(error) = applied.await {
                return Err(self.stop_unapplied(&error));
            }
        }
        self.transactions.commits_mut().applied(lsn);
        self.advance();
        Ok(())
    }

    /// Waits until the operations up to `lsn` are durable and visible.
    pub(crate) async fn settle_own(&self, lsn: Lsn) -> Result<(), Error> {
        self.durable.log().sync(lsn).await?;
        self.advance();
        self.until_visible(lsn).await
    }
}
