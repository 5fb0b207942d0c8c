//! Compares the store with the ordered map of the standard library: random transactions, scans in both
//! directions, and reopening after a close or a crash.

use crate::common::{mem, options, run};
use fulgurite_base::Prng;
use fulgurite_device::Executor;
use fulgurite_engine::{Direction, Durability, Options, Store, Table};
use std::collections::BTreeMap;
use std::ops::Bound;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Returns a short key, a long key, or a key with a long prefix in common with others.
fn key(prng: &mut Prng) -> Vec<u8> {
    let number = prng.below(3000);
    match number % 3 {
        0 => number.to_be_bytes().to_vec(),
        1 => format!("customer/with/a/long/common/part/{number:06}").into_bytes(),
        _ => vec![b'x'; number as usize % 400 + 1],
    }
}

fn value(prng: &mut Prng) -> Vec<u8> {
    let len = match prng.below(20) {
        0 => prng.below(20_000),
        1..=4 => prng.below(1300),
        _ => prng.below(100),
    };
    (0..len).map(|at| (at * 7 + len) as u8).collect()
}

async fn change(store: &Store, table: Table, model: &mut Model, prng: &mut Prng) {
    let transaction = store.begin();
    let mut after = model.clone();
    for _ in 0..=prng.below(12) {
        let key = key(prng);
        if prng.below(3) == 0 {
            transaction.delete(table, &key).await.unwrap();
            after.remove(&key);
        } else {
            let value = value(prng);
            transaction.put(table, &key, &value).await.unwrap();
            after.insert(key, value);
        }
        if prng.below(30) == 0 {
            let (low, high) = (self::key(prng), self::key(prng));
            let range = (Bound::Included(&low[..]), Bound::Excluded(&high[..]));
            let inside = |key: &[u8]| *low <= *key && *key < *high;
            let expected = after.keys().filter(|key| inside(key)).take(40).count();
            // Longer ranges would leave little of the model.
            if expected < 40 {
                assert_eq!(transaction.delete_range(table, range).await.unwrap(), expected as u64);
                after.retain(|key, _| !inside(key));
            }
        }
        if prng.below(10) == 0 {
            let scan = transaction.scan(table, (Bound::Unbounded, Bound::Unbounded), Direction::Forward);
            let seen: Model = scan.limit(50).all().await.unwrap().into_iter().collect();
            let expected: Model = after.clone().into_iter().take(50).collect();
            assert!(seen == expected, "a transaction sees its own writes");
        }
    }
    if prng.below(8) == 0 {
        drop(transaction);
    } else {
        transaction.commit_with(Durability::Flush).await.unwrap();
        *model = after;
    }
}

async fn compare(store: &Store, table: Table, model: &Model, prng: &mut Prng) {
    let snapshot = store.snapshot();
    let (a, b) = (key(prng), key(prng));
    let range = (Bound::Excluded(&a[..]), Bound::Included(&b[..]));
    let mut expected: Vec<_> = if a < b {
        model.range::<[u8], _>(range).map(|(key, value)| (key.clone(), value.clone())).collect()
    } else {
        Vec::new()
    };
    let forward = snapshot.scan(table, range, Direction::Forward).all().await.unwrap();
    assert!(forward == expected, "forward: {} rows for {}", forward.len(), expected.len());
    expected.reverse();
    let backward = snapshot.scan(table, range, Direction::Backward).all().await.unwrap();
    assert!(backward == expected, "backward: {} rows for {}", backward.len(), expected.len());
    // Reads some records one by one, and the first of the remaining ones in one call.
    let (few, limit) = (prng.below(20) as usize, prng.below(100) as usize);
    let mut scan = snapshot.scan(table, range, Direction::Backward);
    let mut found = Vec::new();
    while found.len() < few.min(expected.len()) {
        found.push(scan.next().await.unwrap().unwrap());
    }
    let rest = scan.limit(limit).rows().await.unwrap();
    found.extend(rest.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
    assert!(found == expected[..expected.len().min(few + limit)], "{few} rows and {limit}: {}", found.len());
    let keys: Vec<Vec<u8>> = (0..20).map(|_| key(prng)).collect();
    let borrowed: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let values = snapshot.get_many(table, &borrowed).await.unwrap();
    for (key, value) in std::iter::zip(&keys, values) {
        assert!(value.as_ref() == model.get(key), "{key:?}");
        assert!(snapshot.get(table, key).await.unwrap().as_ref() == model.get(key));
    }
}

fn check(options: Options, seed: u64) {
    let executor = Executor::new(mem());
    let mut prng = Prng::new(seed, "model");
    let mut model = Model::new();
    run(&executor, |handle| Store::create(handle, options.clone())).unwrap();
    for round in 0..6 {
        let (given, opening) = (model.clone(), options.clone());
        let mut own = prng.clone();
        (model, prng) = run(&executor, |handle| async move {
            let store = Store::open(handle, opening).await.unwrap();
            let table = store.create_table("records").await.unwrap();
            let mut model = given;
            for step in 0..150 {
                change(&store, table, &mut model, &mut own).await;
                if step % 10 == 0 {
                    compare(&store, table, &model, &mut own).await;
                }
            }
            let all = (Bound::Unbounded, Bound::Unbounded);
            let all = store.snapshot().scan(table, all, Direction::Forward).all().await.unwrap();
            assert!(all.into_iter().collect::<Model>() == model);
            let report = store.check().await.unwrap();
            assert!(report.problems.is_empty(), "{:?}", report.problems);
            if round % 2 == 0 {
                store.close().await.unwrap();
            }
            (model, own)
        });
    }
}

#[test]
fn the_store_is_a_map() {
    for seed in 0..4 {
        check(options(), seed);
    }
    check(Options { page_bytes: 16384, memory_bytes: 2 << 20, ..options() }, 7);
}
