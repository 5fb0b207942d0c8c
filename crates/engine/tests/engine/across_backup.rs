//! Tests that the backups of several shards are one state.

use crate::across::{in_each, made, number, options};
use fulgurite_base::{Nanos, Prng};
use fulgurite_device::{Executor, Handle, MemDevice};
use fulgurite_engine::blocking::{Db, Table};
use fulgurite_engine::{Direction, Durability, Error, MemImage, Sink, StoreFuture, restore};
use std::ops::Bound::Unbounded;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;

const ACCOUNTS: u8 = 40;
const EACH: u64 = 100;
const ROUNDS: u8 = 6;

/// An image in memory that another thread can read. Each write waits until commits have gone on.
#[derive(Clone)]
struct Image {
    bytes: Arc<Mutex<Vec<u8>>>,
    commits: Arc<AtomicU64>,
    handle: Handle,
}

impl Sink for Image {
    fn write<'a>(&'a self, at: u64, bytes: &'a [u8]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let (handle, before) = (&self.handle, self.commits.load(Relaxed));
            while self.commits.load(Relaxed) < before + 4 {
                handle.sleep_until(handle.now() + Nanos::from_micros(10)).await;
            }
            let mut image = self.bytes.lock().unwrap();
            let end = at as usize + bytes.len();
            let len = image.len().max(end);
            image.resize(len, 0);
            image[at as usize..end].copy_from_slice(bytes);
            Ok(())
        })
    }

    fn clear(&self, at: u64, bytes: u64) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let mut image = self.bytes.lock().unwrap();
            let end = image.len().min((at + bytes) as usize);
            image[(at as usize).min(end)..end].fill(0);
            Ok(())
        })
    }

    fn sync(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move { Ok(()) })
    }
}

/// Opens the images of all shards as one store.
fn restored(images: &[Arc<Mutex<Vec<u8>>>]) -> (Db, Table) {
    let drives = images.iter().map(|image| {
        let drive = || MemDevice::new(16_384, 4096, 64, Nanos::from_micros(10));
        let executor = Executor::new(drive());
        let (image, handle) = (MemImage::new(image.lock().unwrap().clone()), executor.handle());
        executor.block_on(async move { restore(&image, handle).await.unwrap() }).unwrap();
        executor.with_device(|device| std::mem::replace(device, drive()))
    });
    let db = Db::open(drives.collect(), options()).unwrap();
    let table = db.table("records").unwrap();
    (db, table)
}

/// Moves amounts between accounts until `stop` is set.
fn transfer(db: &Db, table: &Table, seed: u64, commits: &AtomicU64, stop: &AtomicBool) {
    let mut prng = Prng::new(seed, "transfers");
    while !stop.load(Relaxed) {
        let [from, to] = [(); 2].map(|()| [prng.below(ACCOUNTS.into()) as u8]);
        if from == to {
            continue;
        }
        let moved = db.transact(|transaction| -> Result<(), Error> {
            let left = number(transaction.get_for_update(table, &from)?);
            transaction.put(table, &from, &left.saturating_sub(7).to_le_bytes())?;
            let right = number(transaction.get_for_update(table, &to)?);
            transaction.put(table, &to, &(right + left.min(7)).to_le_bytes())
        });
        moved.unwrap();
        commits.fetch_add(1, Relaxed);
    }
}

/// The rule: the backups of several shards are one state. While threads move amounts between shards, the sum in the
/// restored store is whole. Two records that a thread writes in order, in different shards, are restored in this order,
/// and every commit that had returned before the backup is there.
#[test]
fn the_backups_of_several_shards_are_one_state() {
    for shards in [2, 3] {
        let (db, table) = made(shards);
        (0..ACCOUNTS).for_each(|key| db.put(&table, &[key], &EACH.to_le_bytes()).unwrap());
        let (stop, commits) = (AtomicBool::new(false), Arc::new(AtomicU64::new(0)));
        let images: Vec<Arc<Mutex<Vec<u8>>>> = (0..shards).map(|_| Arc::default()).collect();
        let ordered = in_each(&db, "ordered");
        thread::scope(|scope| {
            let (db, table, stop, commits, ordered) = (&db, &table, &stop, &commits, &ordered);
            for seed in 0..3 {
                scope.spawn(move || transfer(db, table, seed, commits, stop));
            }
            scope.spawn(move || {
                for number in 1u64.. {
                    if stop.load(Relaxed) {
                        return;
                    }
                    for key in [&ordered[shards - 1], &ordered[0]] {
                        db.put_with(table, key, &number.to_le_bytes(), Durability::Relaxed).unwrap();
                    }
                }
            });
            let _stop = crate::across::Stop(stop);
            for round in 0..ROUNDS {
                let key = [200 + round];
                db.put_with(table, &key, &[round; 8], Durability::Relaxed).unwrap();
                let sink = |shard: usize, handle: Handle| {
                    let (bytes, commits) = (Arc::clone(&images[shard]), Arc::clone(commits));
                    Ok(Image { bytes, commits, handle })
                };
                let reports = db.backup_into(sink).unwrap();
                assert_eq!(reports.len(), shards);
                let (copy, table) = restored(&images);
                let get = |key: &[u8]| number(copy.get(&table, key).unwrap());
                let sum: u64 = (0..ACCOUNTS).map(|key| get(&[key])).sum();
                assert_eq!(sum, EACH * u64::from(ACCOUNTS), "round {round}");
                let (first, second) = (get(&ordered[shards - 1]), get(&ordered[0]));
                assert!(first >= second, "{first} before {second}");
                assert_eq!(copy.get(&table, &key).unwrap(), Some(vec![round; 8]));
                let all = copy.scan(&table, (Unbounded, Unbounded), Direction::Forward);
                assert!(all.count() >= usize::from(ACCOUNTS));
                assert!(copy.check().unwrap().iter().all(|report| report.problems.is_empty()));
                copy.close().unwrap();
            }
        });
    }
}
