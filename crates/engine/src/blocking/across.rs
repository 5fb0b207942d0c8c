//! Commits transactions of several shards: moves their sides through the stages of `shard::commit::across`.
//!
//! Each stage is a call of each shard that has a part in it. The flushes of a stage are all begun before the first of
//! them is awaited, so the drives work at the same time. A call can be given up until the coordinator appends its
//! record; from then on the commit waits for flushes only, and goes on.

use super::db::Db;
use super::side::{Common, Side};
use crate::format::part::GlobalId;
use crate::memory::decisions::LoggedAt;
use crate::{Durability, Error, Lsn};

/// Commits a transaction with several sides.
pub(super) fn commit(
    sides: &mut [Side],
    common: &mut Common,
    durability: Option<Durability>,
) -> Result<(), Error> {
    sides.sort_unstable_by_key(|side| side.shard);
    sides.iter_mut().try_for_each(|side| side.send(common))?;
    let mut writers = Vec::with_capacity(sides.len());
    for side in sides {
        if side.ask(common, |inner| async move { inner.admit().await })? {
            writers.push(side);
        }
    }
    let db = &common.db;
    let Some((coordinator, others)) = writers.split_first_mut() else { return Ok(()) };
    if others.is_empty() {
        return decide(db, coordinator, None, durability).map_err(Undecided::into_error);
    }
    let shard = coordinator.shard;
    let id = db.shard(shard).at_once(|inside| inside.decisions_mut().draw(shard as u32))?;
    prepare(db, others, id)?;
    let _shared = db.states().shared();
    let mut others = Others { db, sides: others };
    match decide(db, coordinator, Some(id), durability) {
        Ok(()) => others.finish(shard, id),
        Err(Undecided::Unknown(error)) => Err(error),
        Err(Undecided::Aborted(error)) => {
            // They end as aborted with the transaction.
            others.sides = &mut [];
            Err(error)
        }
    }
}

/// Prepares sides, and waits until they are durable.
fn prepare(db: &Db, sides: &[&mut Side], id: GlobalId) -> Result<(), Error> {
    let begin = |side: &&mut Side| -> Result<(usize, u64, Lsn), Error> {
        let (shard, number) = (side.shard, side.number.ok_or(Error::Closed)?);
        let lsn = db.shard(shard).at_once(|inside| inside.transaction(number)?.prepare(id))??;
        Ok((shard, number, lsn))
    };
    let begun = sides.iter().map(begin).collect::<Result<Vec<_>, Error>>()?;
    begun.into_iter().try_for_each(|(shard, number, lsn)| {
        db.shard(shard).commit(move |inside| {
            let inner = inside.transaction(number)?;
            Ok(async move { inner.until_durable(lsn).await })
        })
    })
}

/// The reason why a coordinator did not say that a transaction is committed.
enum Undecided {
    /// Its record is not in the log.
    Aborted(Error),
    /// Its record may be in the log.
    Unknown(Error),
}

impl Undecided {
    fn into_error(self) -> Error {
        match self {
            Undecided::Aborted(error) | Undecided::Unknown(error) => error,
        }
    }
}

/// Commits the side of the coordinator, or the only one with writes, which needs no identity.
fn decide(
    db: &Db,
    side: &mut Side,
    id: Option<GlobalId>,
    durability: Option<Durability>,
) -> Result<(), Undecided> {
    let number = side.number.take();
    let outcome = db.shard_asking(side.shard, None).commit(move |inside| {
        let inner = inside.take_transaction(number.ok_or(Error::Closed)?)?;
        Ok(async move { Ok(inner.decide(id, durability).await) })
    });
    match outcome {
        Ok((_, Ok(()))) => Ok(()),
        Ok((false, Err(error))) => Err(Undecided::Aborted(error)),
        Ok((true, Err(error))) | Err(error) => Err(Undecided::Unknown(error)),
    }
}

/// The prepared sides of a transaction whose coordinator decides. If they are dropped before they are finished, their
/// shards stop: only the next opening learns the outcome.
struct Others<'a, 'b> {
    db: &'a Db,
    sides: &'b mut [&'a mut Side],
}

impl Others<'_, '_> {
    /// Commits the sides, and waits until they are visible.
    fn finish(&mut self, coordinator: usize, id: GlobalId) -> Result<(), Error> {
        let db = self.db;
        let finish = |side: &mut &mut Side| -> Result<(usize, LoggedAt), Error> {
            let number = side.number.take().ok_or(Error::Closed)?;
            let logged =
                db.shard(side.shard).at_once(|inside| inside.take_transaction(number)?.finish())??;
            Ok((side.shard, logged))
        };
        // The decision is known, so a side that fails does not keep the others from their end.
        let logged: Vec<Result<_, Error>> = self.sides.iter_mut().map(finish).collect();
        let logged = logged.into_iter().collect::<Result<Vec<_>, Error>>()?;
        for (shard, LoggedAt { lsn, .. }) in &logged {
            let lsn = *lsn;
            db.shard_asking(*shard, None).run(move |inside| {
                let store = inside.store.clone();
                Ok(async move { store.0.until_visible(lsn).await })
            })?;
        }
        let logged = logged.into_iter().map(|(_, logged)| logged).collect();
        db.shard(coordinator).at_once(|inside| inside.decisions_mut().logged_by_others(id, logged))
    }
}

impl Drop for Others<'_, '_> {
    fn drop(&mut self) {
        for side in self.sides.iter() {
            let Some(number) = side.number else { continue };
            // An error is ignored, because a broken shard needs no stop.
            let _ = self
                .db
                .shard(side.shard)
                .at_once(|inside| inside.transaction(number).map(|transaction| transaction.stop_in_doubt()));
        }
    }
}
