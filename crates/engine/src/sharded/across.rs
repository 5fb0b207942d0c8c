//! Commits transactions of several shards: moves their sides through the stages of `shard::commit::across`.
//!
//! The flushes of a stage are all begun before the first of them is awaited. The commit can be given up until the
//! coordinator appends its record; from then on it goes on in a task of its own.

use super::shards::Shards;
use crate::format::part::GlobalId;
use crate::memory::decisions::LoggedAt;
use crate::wait::{to_its_end, together};
use crate::{Durability, Error, Transaction as Inner};
use std::rc::Rc;

/// The side of a transaction in a shard.
pub(super) type Side = (usize, Inner);

/// Commits a transaction with several sides, which are in the order of their shards.
pub(super) async fn commit(
    shards: &Rc<Shards>,
    sides: Vec<Side>,
    durability: Option<Durability>,
) -> Result<(), Error> {
    let mut writers = Vec::with_capacity(sides.len());
    let mut readers = Vec::new();
    for side in sides {
        if side.1.admit().await? { writers.push(side) } else { readers.push(side) }
    }
    if writers.is_empty() {
        return Ok(());
    }
    let (coordinator, side) = writers.remove(0);
    let shared = Rc::clone(shards);
    let handle = shards.each[coordinator].handle();
    if writers.is_empty() {
        let decide = async move {
            let _readers = readers;
            side.decide(None, durability).await.1
        };
        return to_its_end(handle, decide).await;
    }
    let id = shards.each[coordinator].0.transactions.decisions_mut().draw(coordinator as u32);
    let prepared = writers.iter().map(|(_, side)| side.prepare(id)).collect::<Result<Vec<_>, Error>>()?;
    let durable = std::iter::zip(&writers, prepared).map(|((_, side), lsn)| side.until_durable(lsn));
    together(durable.collect()).await.into_iter().collect::<Result<(), Error>>()?;
    let commit = async move {
        // The locks on what the transaction has only read are held until it is visible everywhere.
        let _readers = readers;
        let _becoming = shared.states.become_visible().await;
        let mut others = Others(writers);
        if planted!(shared.each[coordinator].0.options, DecisionNotAwaited) {
            others.finish(&shared, coordinator, id).await?;
        }
        match side.decide(Some(id), durability).await {
            (_, Ok(())) => others.finish(&shared, coordinator, id).await,
            (true, Err(error)) => Err(error),
            (false, Err(error)) => {
                // They end as aborted with the transaction.
                drop(std::mem::take(&mut others.0));
                Err(error)
            }
        }
    };
    to_its_end(handle, commit).await
}

/// The prepared sides of a transaction whose coordinator decides. If they are dropped before they are finished, their
/// shards stop: only the next opening learns the outcome.
struct Others(Vec<Side>);

impl Others {
    /// Commits the sides, and waits until they are visible.
    async fn finish(&mut self, shards: &Shards, coordinator: usize, id: GlobalId) -> Result<(), Error> {
        // The decision is known, so a side that fails does not keep the others from their end.
        let finished = self.0.drain(..).map(|(shard, side)| Ok((shard, side.finish()?)));
        let logged: Vec<Result<(usize, LoggedAt), Error>> = finished.collect();
        let logged = logged.into_iter().collect::<Result<Vec<_>, Error>>()?;
        for (shard, LoggedAt { lsn, .. }) in &logged {
            shards.each[*shard].0.until_visible(*lsn).await?;
        }
        let logged = logged.into_iter().map(|(_, logged)| logged).collect();
        shards.each[coordinator].0.transactions.decisions_mut().logged_by_others(id, logged);
        shards.commits_across.set(shards.commits_across.get() + 1);
        Ok(())
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        self.0.iter().for_each(|(_, side)| side.stop_in_doubt());
    }
}
