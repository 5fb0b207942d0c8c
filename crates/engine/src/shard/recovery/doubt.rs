//! Ends transactions in doubt: those of several shards that a crash has left prepared. The shard that coordinated such
//! a transaction has decided it if and only if its log says so. `blocking` asks it when it opens the shards.
//!
//! The decision is logged and durable before its operations are redone, as recovery redoes others. A crash in between
//! leaves both records in the log, and the coordinator keeps its decision until the opening ends.

use super::RedoBatch;
use crate::format::log_record::take_ops;
use crate::format::part::GlobalId;
use crate::shard::Shard;
use crate::{Error, Lsn};
use std::rc::Rc;

impl Shard {
    /// Ends a transaction in doubt. Its operations are redone if it was committed.
    pub(crate) async fn end_transaction(self: &Rc<Self>, id: GlobalId, committed: bool) -> Result<(), Error> {
        let Some((since, ops)) = self.transactions.decisions().doubtful(id) else { return Ok(()) };
        if self.durable.log().used() > self.durable.log().capacity() * 3 / 4 {
            self.checkpoint(Lsn(u64::MAX)).await?;
        }
        let lsn = self.append_decision(id, committed);
        self.durable.log().sync(lsn).await?;
        if committed {
            let mut batch = RedoBatch::new((ops.len() as u64, 0), self.options.log_bytes);
            batch.begin_record(since);
            let added = take_ops(&mut &ops[..], |op| batch.add(op));
            debug_assert!(added.is_some(), "recovery has read them");
            self.redo_batch(&mut batch, true, lsn).await?;
        }
        let is_last = {
            let mut decisions = self.transactions.decisions_mut();
            decisions.settle(id);
            decisions.in_doubt().is_empty()
        };
        if is_last {
            self.clean_up_later();
        }
        Ok(())
    }
}
