//! Runs a session, which is a transaction or snapshot that records all its operations in the history.

use super::world::{Stop, World};
use crate::history::{Action, Kind, Outcome};
use crate::value::{Key, TableName, TxnId, Value, Version};
use crate::violation::{Violation, ViolationKind};
use fulgurite_engine::sharded::{Snapshot, Transaction};
use fulgurite_engine::{Direction, Durability, Error, IndexRow};
use std::ops::Bound;

/// The transaction or snapshot that executes the reads.
enum Reader {
    Transaction(Transaction),
    Snapshot(Snapshot),
}

/// A transaction or snapshot in progress, with its entry in the history.
pub(super) struct Session<'w> {
    world: &'w World,
    reader: Reader,
    at: usize,
    id: TxnId,
    writes: u32,
    /// The shards in which it has written, a bit for each.
    shards: u64,
}

impl<'w> Session<'w> {
    pub(super) async fn begin(world: &'w World, client: u32, snapshot: bool) -> Session<'w> {
        let id = world.next_txn();
        let kind = if snapshot { Kind::Snapshot } else { Kind::Locking };
        let at = world.history.borrow_mut().begin(id, client, kind);
        // The tick is taken before the call, so that the interval in the history contains the moment at which
        // the call takes effect.
        let reader = if snapshot {
            Reader::Snapshot(world.store.snapshot().await)
        } else {
            Reader::Transaction(world.store.begin())
        };
        Session { world, reader, at, id, writes: 0, shards: 0 }
    }

    fn note(&self, action: Action) {
        self.world.history.borrow_mut().txns[self.at].actions.push(action);
    }

    fn decode(&self, key: Key, bytes: &[u8]) -> Result<Value, Stop> {
        Value::decode(bytes)
            .ok_or_else(|| self.world.wrong(format!("{} read bytes at {key} that nobody wrote", self.id)))
    }

    pub(super) async fn get(&self, key: Key, for_update: bool) -> Result<Option<Value>, Stop> {
        let (table, bytes) = (self.world.table(key.table), key.bytes());
        let record = match &self.reader {
            Reader::Transaction(txn) if for_update => txn.get_for_update(table, &bytes).await,
            Reader::Transaction(txn) => txn.get(table, &bytes).await,
            Reader::Snapshot(snapshot) => snapshot.get(table, &bytes).await,
        };
        let value = self.known(record)?.map(|bytes| self.decode(key, &bytes)).transpose()?;
        self.note(Action::Read { key, seen: value.map(|value| value.version) });
        Ok(value)
    }

    /// Reads several keys of one table in one call.
    pub(super) async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Value>>, Stop> {
        let Some(first) = keys.first() else { return Ok(Vec::new()) };
        let table = self.world.table(first.table);
        let bytes: Vec<Vec<u8>> = keys.iter().map(|key| key.bytes()).collect();
        let slices: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        let records = match &self.reader {
            Reader::Transaction(txn) => txn.get_many(table, &slices).await,
            Reader::Snapshot(snapshot) => snapshot.get_many(table, &slices).await,
        };
        let records = self.known(records)?;
        if records.len() != keys.len() {
            return Err(self.world.wrong(format!("{} keys gave {} answers", keys.len(), records.len())));
        }
        let mut values = Vec::new();
        for (key, record) in keys.iter().zip(records) {
            let value = record.map(|bytes| self.decode(*key, &bytes)).transpose()?;
            self.note(Action::Read { key: *key, seen: value.map(|value| value.version) });
            values.push(value);
        }
        Ok(values)
    }

    /// Reads from `first` to `last` inclusive, or in the reverse direction, at most `limit` rows.
    pub(super) async fn scan(
        &self,
        first: Key,
        last: Key,
        backward: bool,
        limit: usize,
    ) -> Result<Vec<(Key, Value)>, Stop> {
        let (low, high) = (first.bytes(), last.bytes());
        let range = (Bound::Included(low.as_slice()), Bound::Included(high.as_slice()));
        let direction = if backward { Direction::Backward } else { Direction::Forward };
        let table = self.world.table(first.table);
        let mut scan = match &self.reader {
            Reader::Transaction(txn) => txn.scan(table, range, direction),
            Reader::Snapshot(snapshot) => snapshot.scan(table, range, direction),
        };
        let mut rows: Vec<(Key, Value)> = Vec::new();
        while rows.len() < limit
            && let Some((key, bytes)) = self.known(scan.next().await)?
        {
            let Some(key) = Key::from_bytes(first.table, &key) else {
                return Err(self.world.wrong(format!("{} found a key that nobody wrote: {key:?}", self.id)));
            };
            let in_order =
                rows.last().is_none_or(|(before, _)| if backward { key < *before } else { key > *before });
            if !in_order || key < first || key > last {
                return Err(self.world.wrong(format!("{} found {key} out of place in a scan", self.id)));
            }
            rows.push((key, self.decode(key, &bytes)?));
        }
        self.note_scan(first, last, backward, rows.len() == limit, &rows);
        Ok(rows)
    }

    fn note_scan(&self, first: Key, last: Key, backward: bool, cut_short: bool, rows: &[(Key, Value)]) {
        let mut seen: Vec<(Key, Version)> = rows.iter().map(|(key, value)| (*key, value.version)).collect();
        seen.sort_unstable();
        // If a scan stopped early, the history records its range only up to the last row.
        let range = match (cut_short, rows.last(), backward) {
            (true, Some((end, _)), false) => (first, *end),
            (true, Some((end, _)), true) => (*end, last),
            _ => (first, last),
        };
        if !cut_short || !rows.is_empty() {
            self.note(Action::Scan { first: range.0, last: range.1, rows: seen });
        }
    }

    /// Reads the rows of a group through the index.
    pub(super) async fn index_scan(&self, group: u8) -> Result<Vec<(Key, Value)>, Stop> {
        let bound = [group];
        let range = (Bound::Included(bound.as_slice()), Bound::Included(bound.as_slice()));
        let mut scan = match &self.reader {
            Reader::Transaction(txn) => txn.index_scan(self.world.index, range, Direction::Forward),
            Reader::Snapshot(snapshot) => snapshot.index_scan(self.world.index, range, Direction::Forward),
        };
        let mut rows = Vec::new();
        while let Some(IndexRow { key, value, .. }) = self.known(scan.next().await)? {
            let Some(key) = Key::from_bytes(TableName::Rows, &key) else {
                return Err(self.world.wrong(format!("{} found an index row of no key: {key:?}", self.id)));
            };
            let value = self.decode(key, &value)?;
            if super::world::group(value.amount) != group {
                return Err(self
                    .world
                    .wrong(format!("{} found {key} in group {group} of the index", self.id)));
            }
            self.note(Action::Read { key, seen: Some(value.version) });
            rows.push((key, value));
        }
        Ok(rows)
    }

    pub(super) async fn put(&mut self, key: Key, amount: i64, len: usize) -> Result<(), Stop> {
        let version = self.next_version(key);
        let bytes = Value { version, amount }.encode(len);
        let Reader::Transaction(txn) = &self.reader else { return Ok(()) };
        let done = txn.put(self.world.table(key.table), &key.bytes(), &bytes).await;
        self.known(done)?;
        self.note(Action::Write { key, version, deletes: false });
        Ok(())
    }

    /// Writes a row with a new amount, which may change its group in the index.
    pub(super) async fn put_row(&mut self, key: Key, len: usize) -> Result<(), Stop> {
        let amount = i64::from(self.id.0.wrapping_mul(31) % 1_000) + i64::from(self.writes);
        self.put(key, amount, len).await
    }

    pub(super) async fn delete(&mut self, key: Key) -> Result<(), Stop> {
        let version = self.next_version(key);
        let Reader::Transaction(txn) = &self.reader else { return Ok(()) };
        let done = txn.delete(self.world.table(key.table), &key.bytes()).await;
        self.known(done)?;
        self.note(Action::Write { key, version, deletes: true });
        Ok(())
    }

    fn next_version(&mut self, key: Key) -> Version {
        self.writes += 1;
        self.shards |= 1 << self.world.store.shard_of(&key.bytes());
        Version::new(self.id, self.writes - 1)
    }

    /// Ends a snapshot, or a transaction that is rolled back.
    pub(super) fn leave(self) {
        let outcome = match self.reader {
            Reader::Snapshot(_) => Outcome::Committed,
            Reader::Transaction(_) => Outcome::Failed,
        };
        self.finish(outcome);
    }

    /// Records the end of the transaction. After a power cut the client does not learn the outcome.
    fn finish(&self, outcome: Outcome) {
        if self.world.device.powered() {
            self.world.history.borrow_mut().end(self.at, outcome);
        }
    }

    /// Commits the transaction. If it wrote anything, it also writes its marker.
    pub(super) async fn commit(mut self, durability: Durability) -> Result<(), Stop> {
        if self.writes > 0 {
            self.put(Key::marker(self.id), 0, 0).await?;
        }
        let Session { world, reader, at, shards, .. } = self;
        let Reader::Transaction(txn) = reader else { return Ok(()) };
        {
            let mut history = world.history.borrow_mut();
            let now = history.tick();
            history.txns[at].committing = Some(now);
            history.txns[at].relaxed = durability == Durability::Relaxed && shards.count_ones() < 2;
            history.txns[at].shards = shards;
        }
        let done = txn.commit_with(durability).await;
        let outcome = match &done {
            Ok(()) => Outcome::Committed,
            Err(error) if took_no_effect(error) => Outcome::Failed,
            Err(_) => Outcome::Unknown,
        };
        if world.device.powered() {
            world.history.borrow_mut().end(at, outcome);
        }
        done.map_err(|error| world.stop(&error))
    }

    /// Converts the result of an operation. A failed operation ends the transaction.
    fn known<T>(&self, done: Result<T, Error>) -> Result<T, Stop> {
        done.map_err(|error| {
            self.finish(Outcome::Failed);
            self.world.stop(&error)
        })
    }
}

/// Whether a commit that failed with this error certainly had no effect.
fn took_no_effect(error: &Error) -> bool {
    error.is_retryable() || matches!(error, Error::Full { .. } | Error::TransactionTooLarge { .. })
}

impl Stop {
    /// Records a violation, which ends all clients.
    pub(super) fn violation(world: &World, text: String) -> Stop {
        world.violate(Violation::new(ViolationKind::WrongData, text));
        Stop::Client
    }
}
