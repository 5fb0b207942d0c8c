//! The records of transactions of several shards when a store is opened and closed.

use super::db::Db;
use crate::Error;

impl Db {
    /// Ends the transactions that a crash has left prepared in a shard: they are committed if their coordinators say
    /// so, and aborted otherwise. A crash meanwhile changes no answer, because each coordinator keeps its decisions
    /// until all transactions are ended.
    pub(super) fn end_doubt(&self) -> Result<(), Error> {
        for shard in 0..self.shards() {
            let in_doubt = self.shard(shard).at_once(|inside| inside.decisions().in_doubt())?;
            for id in &in_doubt {
                let (id, coordinator) = (*id, id.coordinator as usize);
                if coordinator >= self.shards() {
                    return Err(Error::InDoubt { transactions: in_doubt.len() });
                }
                let committed =
                    self.shard(coordinator).at_once(|inside| inside.decisions().is_decided(id))?;
                self.shard(shard).run(move |inside| {
                    let store = inside.store.clone();
                    Ok(async move { store.0.end_transaction(id, committed).await })
                })?;
            }
        }
        self.each(|shard| self.shard(shard).at_once(|inside| inside.decisions_mut().end_doubt())).map(drop)
    }

    /// Makes the log of every shard durable, so that no shard needs the decisions of another one any more.
    pub(super) fn flush_logs(&self) -> Result<(), Error> {
        self.each(|shard| {
            self.shard(shard).run(|inside| {
                let store = inside.store.clone();
                Ok(async move { store.0.durable.log().sync(store.0.durable.log().tail()).await })
            })
        })
        .map(drop)
    }
}
