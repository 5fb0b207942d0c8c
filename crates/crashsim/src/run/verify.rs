//! Reads a whole store in several ways and compares the results.

use super::session::Session;
use super::world::{Stop, World, group};
use crate::plan::GROUPS;
use crate::value::{Key, TableName, Value};
use crate::violation::{Violation, ViolationKind};
use std::collections::BTreeMap;

/// The client number of the reader in the history.
const READER: u32 = u32::MAX;

/// Reads all records by scans in both directions, from a snapshot, and through the index. Differences between
/// the results become violations of `world`.
pub(super) async fn read_all(world: &World) -> Result<BTreeMap<Key, Value>, Stop> {
    let session = Session::begin(world, READER, false).await;
    let mut found = BTreeMap::new();
    for table in TableName::ALL {
        let most = if table == TableName::Markers { u32::MAX } else { 999_999 };
        let [first, last] = [0, most].map(|number| Key::new(table, number));
        let forward = session.scan(first, last, false, usize::MAX).await?;
        let mut backward = session.scan(first, last, true, usize::MAX).await?;
        backward.reverse();
        if forward != backward {
            differ(
                world,
                format!(
                    "scans of {} both ways give {} and {} rows",
                    table.text(),
                    forward.len(),
                    backward.len()
                ),
            );
        }
        found.extend(forward);
    }
    compare_index(world, &session, &found).await?;
    session.leave();
    compare_snapshot(world, &found).await?;
    let accounts = found.iter().filter(|(key, _)| key.table == TableName::Accounts);
    world.compare_sum(accounts.map(|(_, value)| value.amount).sum(), "the restart");
    Ok(found)
}

fn differ(world: &World, text: String) {
    world.violate(Violation::new(ViolationKind::Structure, text));
}

async fn compare_index(
    world: &World,
    session: &Session<'_>,
    found: &BTreeMap<Key, Value>,
) -> Result<(), Stop> {
    for number in 0..GROUPS {
        let mut rows = session.index_scan(number).await?;
        rows.sort_unstable_by_key(|(key, _)| *key);
        let expected = found
            .iter()
            .filter(|(key, value)| key.table == TableName::Rows && group(value.amount) == number)
            .map(|(key, value)| (*key, *value));
        if !expected.clone().eq(rows.iter().copied()) {
            let text = format!(
                "group {number} has {} rows in the table and {} in the index",
                expected.count(),
                rows.len()
            );
            differ(world, text);
        }
    }
    Ok(())
}

/// Checks that point reads from a snapshot return the records of `found`.
async fn compare_snapshot(world: &World, found: &BTreeMap<Key, Value>) -> Result<(), Stop> {
    let session = Session::begin(world, READER, true).await;
    for (key, value) in found.iter().filter(|(key, _)| key.table != TableName::Markers) {
        let seen = session.get(*key, false).await?;
        if seen != Some(*value) {
            differ(world, format!("a snapshot reads {seen:?} at {key}, a scan {value:?}"));
        }
    }
    session.leave();
    Ok(())
}

/// Runs the check of the store itself.
pub(super) async fn check(world: &World) -> Result<(), Stop> {
    let report = world.store.check().await.map_err(|error| world.stop(&error))?;
    if let Some(problem) = report.problems.first() {
        let text = format!("{} problems; the first: {problem}", report.problems.len());
        world.violate(Violation::new(ViolationKind::Structure, text));
    }
    // Only an interrupted bulk load may leave pieces without a record, and no history has one.
    if report.unused_pieces > 0 {
        let text = format!("{} pieces of large values belong to no record", report.unused_pieces);
        world.violate(Violation::new(ViolationKind::Structure, text));
    }
    Ok(())
}
