//! Runs a client, which executes its steps in order and repeats a step that the store asks it to retry.

use super::beside;
use super::session::Session;
use super::world::{Stop, World};
use crate::plan::{Step, Work};
use crate::value::{Key, TableName};
use std::rc::Rc;

/// The maximum number of attempts for a step.
const TRIES: u32 = 4;

/// Runs the steps of a client.
pub(super) async fn client(world: Rc<World>, number: u32, steps: Vec<Step>) {
    for step in &steps {
        if step.wait.0 > 0 {
            let now = world.store.handle().now();
            world.store.handle().sleep_until(now + step.wait).await;
        }
        let mut end = Ok(());
        for _ in 0..TRIES {
            let attempt = perform(&world, number, step);
            end = match step.patience {
                None => attempt.await,
                Some(patience) => {
                    let ended = world.store.handle().within(patience, attempt).await;
                    ended.unwrap_or(Err(Stop::Step))
                }
            };
            if end != Err(Stop::Retry) {
                break;
            }
        }
        // The client ends with the power, because a client whose next step needs no drive would continue
        // otherwise.
        if end == Err(Stop::Client) || !world.device.powered() || world.violation.borrow().is_some() {
            break;
        }
    }
    world.clients.set(world.clients.get() - 1);
}

async fn perform(world: &World, client: u32, step: &Step) -> Result<(), Stop> {
    if step.work == Work::Checkpoint {
        // If the record cache has memory of its own, every second checkpoint is a partial one, like the
        // automatic checkpoints of the store.
        let outcome = match world.has_records && world.txns().is_multiple_of(2) {
            true => world.store.checkpoint_older_half().await,
            false => world.store.checkpoint().await,
        };
        return outcome.map_err(|error| world.stop(&error));
    }
    match step.work {
        Work::Compact => return beside::compact(world).await,
        Work::Backup => return beside::back_up(world).await,
        Work::MakeTable { rows, len, drops } => return beside::make_table(world, rows, len, drops).await,
        _ => {}
    }
    let snapshot = match &step.work {
        Work::Scan { snapshot, .. }
        | Work::Sum { snapshot }
        | Work::GetMany { snapshot, .. }
        | Work::IndexScan { snapshot, .. } => *snapshot,
        _ => false,
    };
    let mut session = Session::begin(world, client, snapshot).await;
    act(world, &mut session, &step.work).await?;
    if snapshot || step.rolls_back {
        session.leave();
        Ok(())
    } else {
        session.commit(step.durability).await
    }
}

async fn act(world: &World, session: &mut Session<'_>, work: &Work) -> Result<(), Stop> {
    match work {
        Work::Transfer { from, to, amount, for_update } => {
            transfer(session, [*from, *to], *amount, *for_update).await
        }
        Work::Update { keys, len, for_update } => {
            for key in keys {
                session.get(*key, *for_update).await?;
                session.put_row(*key, *len).await?;
            }
            Ok(())
        }
        Work::Put { keys, len } => {
            for key in keys {
                session.put_row(*key, *len).await?;
            }
            Ok(())
        }
        Work::Delete { first, last } => {
            let [first, last] = [*first, *last].map(|number| Key::new(TableName::Rows, number));
            for (key, _) in session.scan(first, last, false, usize::MAX).await? {
                session.delete(key).await?;
            }
            Ok(())
        }
        Work::ScanAndPut { first, last, put, len } => {
            let [first, last, put] = [*first, *last, *put].map(|number| Key::new(TableName::Rows, number));
            session.scan(first, last, false, usize::MAX).await?;
            session.put_row(put, *len).await?;
            // Scan again, because the transaction must see the row that it has written among the others.
            session.scan(first, last, true, usize::MAX).await.map(drop)
        }
        Work::Scan { first, last, backward, limit, .. } => {
            session.scan(*first, *last, *backward, *limit).await.map(drop)
        }
        Work::Sum { snapshot } => sum(world, session, *snapshot).await,
        Work::GetMany { keys, .. } => session.get_many(keys).await.map(drop),
        Work::IndexScan { group, .. } => session.index_scan(*group).await.map(drop),
        Work::Checkpoint | Work::Compact | Work::Backup | Work::MakeTable { .. } => Ok(()),
    }
}

async fn transfer(
    session: &mut Session<'_>,
    accounts: [u32; 2],
    amount: i64,
    for_update: bool,
) -> Result<(), Stop> {
    let keys = accounts.map(|number| Key::new(TableName::Accounts, number));
    let mut amounts = [0; 2];
    for (key, slot) in keys.iter().zip(&mut amounts) {
        // A missing account needs no report here, because the history shows it.
        let Some(value) = session.get(*key, for_update).await? else { return Ok(()) };
        *slot = value.amount;
    }
    session.put(keys[0], amounts[0] - amount, 40).await?;
    session.put(keys[1], amounts[1] + amount, 40).await
}

async fn sum(world: &World, session: &Session<'_>, snapshot: bool) -> Result<(), Stop> {
    let [first, last] = [0, 999_999].map(|number| Key::new(TableName::Accounts, number));
    let rows = session.scan(first, last, false, usize::MAX).await?;
    let sum = rows.iter().map(|(_, value)| value.amount).sum();
    // In general a transaction that may still be rolled back need not have seen consistent data. This one
    // holds locks on everything that it has read, so its sum must be right.
    world.compare_sum(sum, if snapshot { "a snapshot" } else { "a transaction" });
    Ok(())
}
