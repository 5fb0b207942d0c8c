//! Tests that transactions of several shards are whole or absent after any power cut.

use crate::across::in_each;
use crate::common::powered::{Medium, Power};
use fulgurite_base::Prng;
use fulgurite_device::{Fault, FaultDevice};
use fulgurite_engine::blocking::Db;
use fulgurite_engine::{Direction, Durability, Error, Options};
use std::ops::Bound::Unbounded;

const ACCOUNTS: u8 = 12;
const EACH: u32 = 100;
const ROUNDS: u32 = 7;

fn options() -> Options {
    Options { memory_bytes: 1 << 20, log_bytes: 1 << 20, ..Options::default() }
}

fn account(number: u8) -> Vec<u8> {
    format!("account {number:03}").into_bytes()
}

fn number(value: &[u8]) -> u32 {
    u32::from_le_bytes(value[..4].try_into().unwrap())
}

/// Returns the value that stands for a number. Some are large, and are stored in pieces.
fn value(number: u32, is_large: bool) -> Vec<u8> {
    let mut value = number.to_le_bytes().to_vec();
    value.resize(if is_large { 9_000 } else { 40 }, number as u8);
    value
}

/// Creates a store with `shards` shards, closes it, and returns its drives.
fn made(shards: usize) -> Vec<Medium> {
    let media: Vec<Medium> = (0..shards).map(|_| Medium::empty()).collect();
    let power = Power::new(u64::MAX);
    let db = Db::create(media.iter().map(|medium| medium.drive(&power)).collect(), options()).unwrap();
    let table = db.create_table("records").unwrap();
    for number in 0..ACCOUNTS {
        db.put(&table, &account(number), &value(EACH, false)).unwrap();
    }
    for key in ["equal", "large", "pair"].iter().flat_map(|name| in_each(&db, name)) {
        db.put(&table, &key, &value(0, false)).unwrap();
    }
    db.close().unwrap();
    drop(db);
    media
}

fn open(media: &[Medium], power: &Power) -> Result<Db, Error> {
    Db::open(media.iter().map(|medium| medium.drive(power)).collect(), options())
}

/// The transactions that a store with power for some commands has acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Acknowledged {
    /// The number that all the equal records have at least.
    equal: u32,
    /// The number of the commit that may have taken effect beside.
    begun: u32,
}

/// Sets the records of every shard to the next number, and moves amounts between accounts, until `rounds` are done or
/// the power is cut.
fn work(db: &Db, rounds: u32, seen: &mut Acknowledged) -> Result<(), Error> {
    let table = db.table("records")?;
    let (equal, large, pair) = (in_each(db, "equal"), in_each(db, "large"), in_each(db, "pair"));
    let mut prng = Prng::new(7, "work");
    for round in 1..=rounds {
        let durability = [Durability::Flush, Durability::Relaxed, Durability::Group][round as usize % 3];
        seen.begun = round;
        let mut transaction = db.begin();
        for (key, other) in equal.iter().zip(&large) {
            transaction.put(&table, key, &value(round, false))?;
            transaction.put(&table, other, &value(round, round % 4 == 1))?;
        }
        transaction.commit_with(durability)?;
        seen.equal = round;
        let (from, to) = (prng.below(ACCOUNTS.into()) as u8, prng.below(ACCOUNTS.into()) as u8);
        if from != to {
            let mut transaction = db.begin();
            let left = number(&transaction.get_for_update(&table, &account(from))?.unwrap());
            let right = number(&transaction.get_for_update(&table, &account(to))?.unwrap());
            transaction.put(&table, &account(from), &value(left - 1, false))?;
            transaction.put(&table, &account(to), &value(right + 1, false))?;
            transaction.commit_with(durability)?;
        }
        // It reads a value in one shard that is not durable yet, and its write in another one depends on it.
        let (read, written) = (&pair[0], &pair[1]);
        db.put_with(&table, read, &value(round, false), Durability::Relaxed)?;
        let mut transaction = db.begin();
        let copy = transaction.get(&table, read)?.unwrap();
        transaction.put(&table, written, &copy)?;
        transaction.commit_with(durability)?;
        // A transaction of one shard in between, and one that is undone.
        db.put_with(&table, &[round as u8], &[1; 300], Durability::Relaxed)?;
        let mut undone = db.begin();
        equal.iter().try_for_each(|key| undone.put(&table, key, b"never"))?;
        undone.get(&table, &equal[0])?;
        drop(undone);
        if round % 3 == 0 {
            db.checkpoint()?;
        }
    }
    Ok(())
}

/// Checks a store after a power cut.
fn check(db: &Db, seen: Acknowledged, what: &str) {
    let table = db.table("records").unwrap();
    let snapshot = db.snapshot().unwrap();
    let get = |key: &[u8]| number(&snapshot.get(&table, key).unwrap().unwrap());
    let equal: Vec<u32> =
        in_each(db, "equal").iter().chain(&in_each(db, "large")).map(|key| get(key)).collect();
    assert!(equal.iter().all(|one| *one == equal[0]), "{what}: {equal:?}");
    assert!((seen.equal..=seen.begun).contains(&equal[0]), "{what}: {} of {seen:?}", equal[0]);
    let pair: Vec<u32> = in_each(db, "pair").iter().map(|key| get(key)).collect();
    assert!(pair[0] >= pair[1], "{what}: {pair:?}, what was read is lost");
    let sum: u32 = (0..ACCOUNTS).map(|number| get(&account(number))).sum();
    assert_eq!(sum, u32::from(ACCOUNTS) * EACH, "{what}");
    for key in in_each(db, "large") {
        let found = snapshot.get(&table, &key).unwrap().unwrap();
        assert!(found == value(equal[0], found.len() > 40), "{what}");
    }
    for report in db.check().unwrap() {
        assert!(report.problems.is_empty() && report.unused_pages == 0, "{what}: {report:?}");
    }
    // Nothing is left locked, and the store goes on.
    assert!(db.statistics().unwrap().iter().all(|shard| shard.locks == 0), "{what}");
    db.transact(|transaction| {
        in_each(db, "equal").iter().try_for_each(|key| transaction.put(&table, key, &value(equal[0], false)))
    })
    .unwrap();
}

/// Runs the work on copies of the drives with power for `commands` commands, and cuts it.
fn cut_after(made: &[Medium], commands: u64, kept: u64, prng: &mut Prng) -> (u64, Acknowledged, Vec<Medium>) {
    let (media, power, mut seen) = (made.to_vec(), Power::new(commands), Acknowledged::default());
    // Without power the calls fail.
    let _ = open(&media, &power).and_then(|db| work(&db, ROUNDS, &mut seen));
    let used = commands - power.left();
    media.iter().for_each(|medium| medium.cut(kept, prng));
    (used, seen, media)
}

/// The rule: a power cut after any command of any drive leaves every transaction of several shards whole or absent, and
/// whole if it was acknowledged; also if the power is cut again while the store is opened.
#[test]
fn a_power_cut_leaves_a_transaction_whole_or_absent() {
    for shards in [2, 3] {
        let made = made(shards);
        let mut prng = Prng::new(shards as u64, "cuts");
        let (all, seen, media) = cut_after(&made, 1 << 40, 100, &mut prng);
        assert_eq!(seen.equal, ROUNDS);
        check(&open(&media, &Power::new(u64::MAX)).unwrap(), seen, "no cut");
        let (mut lost, mut kept) = (0, 0);
        for commands in 0..all {
            for kept_percent in [0, 50, 100] {
                let (_, seen, media) = cut_after(&made, commands, kept_percent, &mut prng);
                let what = format!("{shards} shards, {commands} of {all} commands, {kept_percent} %");
                // The opening is cut as well, a little later each time, until it is complete.
                let again = media.to_vec();
                let db =
                    open(&media, &Power::new(u64::MAX)).unwrap_or_else(|error| panic!("{what}: {error}"));
                check(&db, seen, &what);
                drop(db);
                let power = Power::new(prng.below(60));
                let _ = open(&again, &power).and_then(|db| db.checkpoint());
                again.iter().for_each(|medium| medium.cut(prng.below(101), &mut prng));
                let db =
                    open(&again, &Power::new(u64::MAX)).unwrap_or_else(|error| panic!("{what}: {error}"));
                check(&db, seen, &format!("{what}, twice"));
                let table = db.table("records").unwrap();
                let found = db.get(&table, &in_each(&db, "equal")[0]).unwrap().unwrap();
                *if number(&found) > seen.equal { &mut kept } else { &mut lost } += 1;
                let all = db.scan(&table, (Unbounded, Unbounded), Direction::Forward);
                assert!(all.count() >= usize::from(ACCOUNTS) + 2 * shards);
                db.close().unwrap();
            }
        }
        println!("{shards} shards: {all} commands, {kept} unacknowledged commits kept, {lost} not");
        assert!(kept > 20 && lost > kept, "both ends are met");
    }
}

/// The rule: if the shard that decides a transaction fails while it does so, the other shards stop, because they cannot
/// know the outcome. The next opening finds the transaction whole or absent.
#[test]
fn a_coordinator_that_fails_stops_the_others() {
    let made = made(2);
    let mut stopped = 0;
    for write in 0..12 {
        let (media, power) = (made.to_vec(), Power::new(u64::MAX));
        let faults = [vec![Fault::FailWrite(write)], Vec::new()];
        let drives =
            media.iter().zip(faults).map(|(medium, faults)| FaultDevice::new(medium.drive(&power), faults));
        let Ok(db) = Db::open(drives.collect(), options()) else { continue };
        let table = db.table("records").unwrap();
        let keys = in_each(&db, "equal");
        let mut outcome = Ok(());
        for round in 1..4 {
            let mut transaction = db.begin();
            keys.iter().for_each(|key| transaction.put(&table, key, &value(round, false)).unwrap());
            outcome = outcome.and_then(|()| transaction.commit());
        }
        if outcome.is_err() {
            let next = db.put(&table, &keys[1], &value(9, false));
            let Err(Error::Fatal(why)) = next else { panic!("the other shard goes on: {next:?}") };
            stopped += usize::from(why.contains("another shard stopped"));
        }
        drop(db);
        media.iter().for_each(|medium| medium.cut(0, &mut Prng::new(write, "faults")));
        let db = open(&media, &power).unwrap();
        let table = db.table("records").unwrap();
        let found: Vec<u32> = keys.iter().map(|key| number(&db.get(&table, key).unwrap().unwrap())).collect();
        assert_eq!(found[0], found[1], "write {write}, {outcome:?}");
        assert!(outcome.is_err() || found[0] == 3);
    }
    assert!(stopped > 0);
}
