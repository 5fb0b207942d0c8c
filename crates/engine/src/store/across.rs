//! The side of a transaction of several shards in one of them: its calls from the end of its work to its commit. See
//! `shard::commit::across` for the steps.

use crate::Durability;
use crate::format::part::GlobalId;
use crate::memory::decisions::LoggedAt;
use crate::memory::locks::TxnId;
use crate::shard::commit::across::Side;
use crate::store::read_view::ReadView;
use crate::store::transaction::Transaction;
use crate::{Error, Lsn, Store};
use std::any::Any;

impl Store {
    /// Begins the side of a transaction of several shards that has its number from another one. Its age is `first`, as
    /// in [`Store::begin_again`].
    pub(crate) fn begin_side(&self, txn: TxnId, first: TxnId, turn: Option<Box<dyn Any>>) -> Transaction {
        let transaction = Transaction::numbered(&self.0, txn);
        self.0.transactions.begin_again(txn, first, turn);
        transaction
    }
}

impl Transaction {
    /// Waits until everything that the transaction may have read is visible and durable. It has written nothing here,
    /// but other shards depend on what it has read.
    pub(crate) async fn settle(&self) -> Result<(), Error> {
        self.view().check()?;
        let shard = self.view().shard();
        let last = shard.transactions.commits().last();
        shard.durable.log().sync(last).await?;
        shard.advance();
        shard.until_visible(last).await
    }

    /// Whether the transaction has written here.
    pub(crate) fn has_written(&self) -> bool {
        matches!(self.view(), ReadView::Locked { writes, .. } if !writes.borrow().is_empty())
    }

    /// Reserves the space of the writes. Returns false if there are none; then the transaction has settled.
    pub(crate) async fn admit(&self) -> Result<bool, Error> {
        self.view().check()?;
        let writes = self.take_writes();
        if writes.is_empty() {
            return self.settle().await.map(|()| false);
        }
        let side = Side::admit(self.view().shard(), writes).await?;
        self.side.replace(Some(Box::new(side)));
        Ok(true)
    }

    /// Appends the operations as prepared, and begins to make them durable. Returns the LSN to wait for.
    pub(crate) fn prepare(&self, id: GlobalId) -> Result<Lsn, Error> {
        self.side.borrow_mut().as_mut().ok_or(Error::Closed)?.prepare(id)
    }

    /// Waits until the log is durable up to `lsn`.
    pub(crate) async fn until_durable(&self, lsn: Lsn) -> Result<(), Error> {
        self.view().shard().durable.log().sync(lsn).await
    }

    /// Commits the side that decides, or the only one that has written; then `id` is `None`. Returns whether its record
    /// is in the log: then only the next opening knows the outcome after an error.
    pub(crate) async fn decide(
        &self,
        id: Option<GlobalId>,
        durability: Option<Durability>,
    ) -> (bool, Result<(), Error>) {
        let durability = durability.unwrap_or(self.view().shard().options.durability);
        let outcome = match self.side.take() {
            Some(side) => side.decide(self.number(), id, durability, &self.ended).await,
            None => Err(Error::Closed),
        };
        (self.ended.get(), outcome)
    }

    /// Commits a side that is prepared, after the decision. Returns the place of its record in the log.
    pub(crate) fn finish(&self) -> Result<LoggedAt, Error> {
        let side = self.side.take().ok_or(Error::Closed)?;
        side.finish(self.number(), &self.ended)
    }

    /// Stops the store, because the outcome of the transaction is unknown until it is opened again.
    pub(crate) fn stop_in_doubt(&self) {
        let shard = self.view().shard();
        if self.side.borrow().is_some() {
            shard.health.stop("another shard stopped before it could say whether a transaction is committed");
            shard.stop_waiting();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::format::part::GlobalId;
    use crate::{Durability, Error, Lsn, MemImage, Options, Source, Store, Table, repair};
    use fulgurite_base::Nanos;
    use fulgurite_device::{Executor, MemDevice};
    use std::future::Future;

    /// Little memory, so that recovery reads a long log twice.
    fn options() -> Options {
        Options { memory_bytes: 400 << 10, log_bytes: 2 << 20, ..Options::default() }
    }

    const ID: GlobalId = GlobalId { coordinator: 9, opening: 1, number: 1 };

    /// Runs `work` on the store of a drive, which is made if there is none, and then lets it crash.
    fn with_store<T: 'static, F: Future<Output = T> + 'static>(
        drive: MemDevice,
        work: impl FnOnce(Store, Table) -> F + 'static,
    ) -> (MemDevice, T) {
        let executor = Executor::new(drive);
        let handle = executor.handle();
        let result = executor.block_on(async move {
            let store = match Store::open_shard(handle.clone().into(), options()).await {
                Ok(store) => store,
                Err(Error::NotAStore) => Store::create(handle, options()).await.unwrap(),
                Err(error) => panic!("{error}"),
            };
            let table = store.create_table("t").await.unwrap();
            let result = work(store.clone(), table).await;
            store.0.health.stop("the power is gone");
            result
        });
        (executor.with_device(|device| std::mem::replace(device, self::drive())), result.unwrap())
    }

    fn drive() -> MemDevice {
        MemDevice::new(4096, 4096, 64, Nanos::from_micros(10))
    }

    async fn get(store: &Store, table: Table, key: &[u8]) -> Option<Vec<u8>> {
        store.snapshot().get(table, key).await.unwrap()
    }

    /// Returns the number of transactions in doubt that a repair reports.
    fn in_doubt(image: MemImage) -> usize {
        let executor = Executor::new(drive());
        let handle = executor.handle();
        let report =
            executor.block_on(async move { repair(&image, handle, options()).await.unwrap() }).unwrap();
        assert_eq!(report.is_whole(), report.in_doubt == 0);
        report.in_doubt
    }

    /// Commits so much that the log is used several times over.
    async fn churn(store: &Store, table: Table, bytes: u64) {
        let before = store.statistics().log_bytes_written;
        for number in 0u32.. {
            let transaction = store.begin();
            for part in 0..4u32 {
                let key = [number % 512, part].map(u32::to_be_bytes).concat();
                transaction.put(table, &key, &[number as u8; 700]).await.unwrap();
            }
            transaction.commit_with(Durability::Group).await.unwrap();
            if store.statistics().log_bytes_written - before > bytes {
                return;
            }
        }
    }

    /// Writes a record in a transaction that is prepared, and then decided if `is_decided`. In between `bytes` of log
    /// are written and a checkpoint is made.
    async fn prepared(store: Store, table: Table, bytes: u64, is_decided: bool) {
        let transaction = store.begin();
        transaction.put(table, b"own", b"new").await.unwrap();
        assert!(transaction.admit().await.unwrap());
        let lsn = transaction.prepare(ID).unwrap();
        transaction.until_durable(lsn).await.unwrap();
        churn(&store, table, bytes).await;
        store.checkpoint().await.unwrap();
        assert!(store.0.durable.log().redo() < lsn, "the log is kept");
        if is_decided {
            let goal = store.0.durable.log().tail();
            let logged = transaction.finish().unwrap();
            store.0.until_visible(logged.lsn).await.unwrap();
            assert_eq!(get(&store, table, b"own").await, Some(b"new".to_vec()));
            store.0.durable.log().sync(logged.lsn).await.unwrap();
            // The operations are in no page that this checkpoint would write because of the decision.
            store.0.checkpoint(goal).await.unwrap();
        }
        // The power is cut before the transaction is dropped.
        store.0.health.stop("the power is gone");
    }

    /// The rule: the log is kept from the record on that prepares a transaction, until its operations are in the pages.
    /// Recovery finds it in doubt, whatever came later, and ends it as the coordinator says. A second crash changes
    /// nothing.
    #[test]
    fn a_prepared_transaction_survives_checkpoints() {
        for committed in [false, true] {
            let (drive, ()) = with_store(drive(), |store, table| async move {
                churn(&store, table, 1 << 16).await;
                let transaction = store.begin();
                transaction.put(table, b"own", b"old").await.unwrap();
                transaction.commit().await.unwrap();
                prepared(store, table, 1 << 20, false).await;
            });
            let (drive, ()) = with_store(drive, |store, table| async move {
                // A repair leaves it out, and says so.
                let mut bytes = vec![0; 4096 * 4096];
                Source::read(store.handle(), 0, &mut bytes).await.unwrap();
                assert_eq!(in_doubt(MemImage::new(bytes)), 1);
                assert_eq!(store.0.transactions.decisions().in_doubt(), [ID]);
                assert_eq!(get(&store, table, b"own").await, Some(b"old".to_vec()));
                store.checkpoint().await.unwrap();
            });
            let (drive, ()) = with_store(drive, move |store, table| async move {
                store.0.end_transaction(ID, committed).await.unwrap();
                let expected = if committed { b"new" } else { b"old" };
                assert_eq!(get(&store, table, b"own").await, Some(expected.to_vec()));
            });
            with_store(drive, move |store, table| async move {
                assert!(store.0.transactions.decisions().in_doubt().is_empty());
                let expected = if committed { b"new" } else { b"old" };
                assert_eq!(get(&store, table, b"own").await, Some(expected.to_vec()));
                assert!(store.check().await.unwrap().problems.is_empty());
                churn(&store, table, 4 << 20).await;
                store.close().await.unwrap();
            });
        }
    }

    /// The rule: a checkpoint copies no record forward that a prepared transaction will replace. Its operations are
    /// before the copy in the log, and the copy would let the redo point pass them.
    #[test]
    fn a_record_that_a_prepared_transaction_replaces_is_not_copied() {
        with_store(drive(), |store, table| async move {
            // A write to a clean leaf stays in memory.
            store.checkpoint().await.unwrap();
            for key in [b"own", b"any"] {
                let transaction = store.begin();
                transaction.put(table, key, b"old").await.unwrap();
                transaction.commit_with(Durability::Flush).await.unwrap();
                // A record in use is copied, and its leaf is not read.
                assert_eq!(get(&store, table, key).await, Some(b"old".to_vec()));
            }
            let transaction = store.begin();
            transaction.put(table, b"own", b"new").await.unwrap();
            assert!(transaction.admit().await.unwrap());
            let lsn = transaction.prepare(ID).unwrap();
            transaction.until_durable(lsn).await.unwrap();
            store.0.settle_records(store.0.durable.log().tail()).await.unwrap();
            assert_eq!(store.0.state.records().counters().carried, 1, "the other record is copied");
        });
    }

    /// The rule: a checkpoint copies no record forward from behind a prepared transaction. The redo point cannot pass
    /// the transaction, so the copy would spend the record's reserved log space and free none.
    #[test]
    fn a_record_behind_a_prepared_transaction_is_not_copied() {
        with_store(drive(), |store, table| async move {
            store.checkpoint().await.unwrap();
            let prepared = store.begin();
            prepared.put(table, b"own", b"new").await.unwrap();
            assert!(prepared.admit().await.unwrap());
            let lsn = prepared.prepare(ID).unwrap();
            prepared.until_durable(lsn).await.unwrap();
            let behind = store.begin();
            behind.put(table, b"any", b"old").await.unwrap();
            behind.commit_with(Durability::Flush).await.unwrap();
            assert_eq!(get(&store, table, b"any").await, Some(b"old".to_vec()));
            let settle = async || {
                store.0.settle_records(store.0.durable.log().tail()).await.unwrap();
                store.0.state.records().counters().carried
            };
            assert_eq!(settle().await, 0);
            drop(prepared);
            // The record was not in use since the last checkpoint, so it is used again.
            assert_eq!(get(&store, table, b"any").await, Some(b"old".to_vec()));
            assert_eq!(settle().await, 1, "nothing holds back the redo point");
        });
    }

    /// The rule: a prepared transaction that is dropped is aborted. It leaves no lock, holds back no log and no close,
    /// and is not in doubt after a crash, even if the record that says so is lost.
    #[test]
    fn a_prepared_transaction_that_is_dropped_is_aborted() {
        let (drive, ()) = with_store(drive(), |store, table| async move {
            let transaction = store.begin();
            transaction.put(table, b"own", b"new").await.unwrap();
            assert!(transaction.admit().await.unwrap());
            let reserved = store.0.log_room.reserved();
            let lsn = transaction.prepare(ID).unwrap();
            transaction.until_durable(lsn).await.unwrap();
            drop(transaction);
            assert!(reserved > 0 && store.0.log_room.reserved() == 0);
            assert_eq!(store.statistics().locks, 0);
            churn(&store, table, 4 << 20).await;
        });
        with_store(drive, |store, table| async move {
            assert!(store.0.transactions.decisions().in_doubt().is_empty());
            assert_eq!(get(&store, table, b"own").await, None);
            let transaction = store.begin();
            transaction.put(table, b"own", b"new").await.unwrap();
            assert!(transaction.admit().await.unwrap());
            transaction.prepare(ID).unwrap();
            drop(transaction);
            store.close().await.unwrap();
            assert!(store.0.durable.superblock().clean);
        });
    }

    /// The rule: the operations of a transaction that was prepared and decided are redone, also if recovery reads the
    /// log in several batches and they are far apart.
    #[test]
    fn a_decided_transaction_is_redone() {
        let (drive, ()) =
            with_store(drive(), |store, table| async move { prepared(store, table, 1 << 20, true).await });
        with_store(drive, |store, table| async move {
            assert!(store.0.transactions.decisions().in_doubt().is_empty());
            assert_eq!(get(&store, table, b"own").await, Some(b"new".to_vec()));
            assert!(store.check().await.unwrap().problems.is_empty());
        });
    }

    /// The rule: a coordinator keeps a decision over checkpoints and crashes until the other shards have it in their
    /// durable logs, and its log does not fill up meanwhile.
    #[test]
    fn a_decision_is_kept_until_nobody_needs_it() {
        let (drive, id) = with_store(drive(), |store, table| async move {
            let transaction = store.begin();
            transaction.put(table, b"own", b"new").await.unwrap();
            assert!(transaction.admit().await.unwrap());
            let id = store.0.transactions.decisions_mut().draw(0);
            assert_eq!(transaction.decide(Some(id), Some(Durability::Relaxed)).await, (true, Ok(())));
            assert!(store.0.durable.log().durable() > Lsn(0));
            churn(&store, table, 5 << 20).await;
            store.checkpoint().await.unwrap();
            id
        });
        let (drive, other) = with_store(drive, move |store, table| async move {
            assert!(store.0.transactions.decisions().is_decided(id));
            churn(&store, table, 5 << 20).await;
            store.checkpoint().await.unwrap();
            store.0.transactions.decisions_mut().draw(0)
        });
        assert_ne!(other, id, "identities are not used twice");
        with_store(drive, move |store, table| async move {
            assert!(store.0.transactions.decisions().is_decided(id));
            store.0.transactions.decisions_mut().end_doubt();
            churn(&store, table, 1 << 20).await;
            assert_eq!(get(&store, table, b"own").await, Some(b"new".to_vec()));
            store.close().await.unwrap();
            assert!(store.0.durable.superblock().clean);
        });
    }
}
