//! The side of a transaction in one of its shards: its buffered writes, and its calls.

use super::cycles::LookOut;
use super::db::Db;
use super::inside::Inside;
use super::retries::Attempt;
use crate::memory::locks::TxnId;
use crate::{Error, Table, Transaction as Inner};
use std::future::Future;
use std::rc::Rc;

/// A buffered write.
pub(super) struct Write {
    pub table: Table,
    pub key: Box<[u8]>,
    pub value: Option<Box<[u8]>>,
}

/// The maximum number of buffered writes, and of their bytes. Writes are buffered because each call of the
/// shard takes its lock.
const MOST_GATHERED: (usize, usize) = (64, 64 << 10);

/// The side of a transaction in a shard.
pub(super) struct Side {
    pub shard: usize,
    /// The number of the transaction in its shard; `None` until the shard knows it.
    pub number: Option<u64>,
    gathered: Vec<Write>,
    gathered_bytes: usize,
}

/// The state that the sides of a transaction share.
pub(super) struct Common {
    pub db: Db,
    /// The number of the transaction; `None` until it has one.
    pub txn: Option<TxnId>,
    /// Whether it has several sides. Then it has a number.
    pub is_across: bool,
    /// The attempt that the transaction is; `None` for the first one until a shard knows it.
    pub attempt: Option<Attempt>,
    /// The error of an earlier call after which the transaction cannot continue; `None` if there was none.
    pub failed: Option<Error>,
    /// Whether the transaction was aborted to resolve a deadlock.
    pub is_aborted: bool,
}

impl Side {
    pub(super) fn new(shard: usize) -> Side {
        Side { shard, number: None, gathered: Vec::new(), gathered_bytes: 0 }
    }

    /// Buffers a write. Returns whether the buffer is full.
    pub(super) fn gather(&mut self, write: Write) -> bool {
        self.gathered_bytes += write.key.len() + write.value.as_ref().map_or(0, |value| value.len());
        self.gathered.push(write);
        let (most, most_bytes) = MOST_GATHERED;
        self.gathered.len() >= most || self.gathered_bytes >= most_bytes
    }

    /// Takes the buffered writes.
    pub(super) fn take_gathered(&mut self) -> Vec<Write> {
        self.gathered_bytes = 0;
        std::mem::take(&mut self.gathered)
    }

    /// Sends the buffered writes to the shard.
    pub(super) fn send(&mut self, common: &mut Common) -> Result<(), Error> {
        let writes = self.take_gathered();
        if writes.is_empty() {
            return Ok(());
        }
        let sent = self.ask(common, move |inner| async move { write_all(&inner, writes).await });
        common.failed = sent.clone().err();
        sent
    }

    /// Runs `work` in the transaction. The first call begins the transaction in the shard.
    pub(super) fn ask<T, W, F>(&mut self, common: &mut Common, work: W) -> Result<T, Error>
    where
        T: Send + 'static,
        W: FnOnce(Rc<Inner>) -> F + Send,
        F: Future<Output = Result<T, Error>> + 'static,
    {
        let Common { db, txn, is_across, attempt, .. } = common;
        let (shard, number) = (self.shard, &mut self.number);
        let look_out = txn.filter(|_| *is_across).map(|txn| LookOut::new(db, shard, txn));
        let work = move |inside: &mut Inside| {
            let number = *number.get_or_insert_with(|| {
                let number = inside.draw();
                let transaction = inside.begin_transaction(shard, *txn, attempt);
                *txn = Some(transaction.number());
                inside.transactions.insert(number, Rc::new(transaction));
                number
            });
            inside.transaction(number).map(work)
        };
        let goes_on = look_out.as_ref().map_or(db.goes_on(), |look_out| Some(&look_out.goes_on));
        let mut outcome = db.shard_asking(shard, goes_on).run(work);
        if matches!(outcome, Err(Error::GivenUp)) && look_out.is_some_and(|look_out| look_out.is_victim()) {
            db.shard(shard).at_once(|inside| inside.count_deadlock())?;
            outcome = Err(Error::Deadlock);
        }
        if matches!(outcome, Err(Error::Deadlock)) {
            common.abort(shard);
        }
        outcome
    }
}

impl Common {
    /// Fails if an earlier call failed in such a way that the transaction cannot continue.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Notes that the transaction was aborted to resolve a deadlock, which was found in a shard.
    pub(super) fn abort(&mut self, shard: usize) {
        self.is_aborted = true;
        self.failed = Some(Error::Deadlock);
        if let Some(attempt) = &mut self.attempt {
            attempt.shard = shard;
        }
    }
}

/// Makes writes in a transaction.
pub(super) async fn write_all(inner: &Inner, writes: Vec<Write>) -> Result<(), Error> {
    for Write { table, key, value } in writes {
        inner.write(table, key, value).await?;
    }
    Ok(())
}
