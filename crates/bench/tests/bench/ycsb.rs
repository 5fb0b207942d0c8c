//! Tests of YCSB: the mixes, updates, inserts, and verification.

use crate::common::{check_mix, config, loaded, on_store, refusal, run};
use fulgurite_base::Prng;
use fulgurite_bench::ycsb::Request;
use fulgurite_bench::{Benchmark, Program};
use fulgurite_engine::Direction;
use std::ops::Bound;

#[test]
fn the_mixes_equal_those_of_the_paper() {
    let mixes: [(&str, &[f64]); 5] = [
        ("ycsb-a", &[50.0, 50.0]),
        ("ycsb-b", &[95.0, 5.0]),
        ("ycsb-d", &[95.0, 5.0]),
        ("ycsb-e", &[95.0, 5.0]),
        ("ycsb-f", &[50.0, 50.0]),
    ];
    on_store(async move |store| {
        loaded(&store, "ycsb-c:records=200").await;
        for (name, shares) in mixes {
            let Program::Ycsb(ycsb) = config(&format!("{name}:records=200")).open(&store).await.unwrap()
            else {
                panic!("{name} is not YCSB")
            };
            check_mix(&*ycsb, shares);
        }
    });
}

#[test]
fn d_reads_the_latest_records_and_e_scans_short_ranges() {
    on_store(async |store| {
        let Program::Ycsb(ycsb) = loaded(&store, "ycsb-d:records=1000").await else { panic!("not YCSB") };
        let mut prng = Prng::new(1, "latest");
        let drawn: Vec<u64> = (0..2_000)
            .filter_map(|_| match ycsb.draw(&mut prng) {
                Request::Read { record } => Some(record),
                _ => None,
            })
            .collect();
        // With a Zipf exponent of 0.99 over 1,000 records, the first ten ranks get 39 % of the reads. Records
        // that are being inserted are not read.
        let latest = drawn.iter().filter(|record| **record >= 990).count() * 100 / drawn.len();
        assert!((34..44).contains(&latest), "{latest}");
        assert_eq!(drawn.iter().max(), Some(&999));
        let Program::Ycsb(ycsb) = config("ycsb-e:records=1000").open(&store).await.unwrap() else {
            panic!("not YCSB")
        };
        let scans: Vec<u32> = (0..2_000)
            .filter_map(|_| match ycsb.draw(&mut prng) {
                Request::Scan { most, .. } => Some(most),
                _ => None,
            })
            .collect();
        assert_eq!((scans.iter().min(), scans.iter().max()), (Some(&1), Some(&100)));
    });
}

#[test]
fn no_update_is_lost() {
    on_store(async |store| {
        // There are few records with a steep popularity, so that nearly every update conflicts.
        let program = loaded(&store, "ycsb-f:records=20,theta=2").await;
        let outcome = run(&program, &store, 600).await;
        assert!(outcome.kinds[1].latency.count() > 200);
        assert_eq!(program.verify(&store).await.unwrap().changes, outcome.kinds[1].latency.count());
    });
}

#[test]
fn inserted_records_are_found_again_and_numbering_continues() {
    on_store(async |store| {
        let program = loaded(&store, "ycsb-d:records=300").await;
        let inserted = run(&program, &store, 400).await.kinds[1].latency.count();
        assert!(inserted > 5, "{inserted}");
        assert_eq!(program.verify(&store).await.unwrap().rows, 300 + inserted);
        // When the store is opened again, the numbers of new records continue after the last inserted one.
        let again = config("ycsb-d:records=300").open(&store).await.unwrap();
        let more = run(&again, &store, 400).await.kinds[1].latency.count();
        assert_eq!(again.verify(&store).await.unwrap().rows, 300 + inserted + more);
    });
}

#[test]
fn blind_updates_read_nothing() {
    on_store(async |store| {
        let program = loaded(&store, "ycsb-a:records=300,write_all=yes").await;
        let outcome = run(&program, &store, 300).await;
        assert_eq!(outcome.read_latency.count(), outcome.kinds[0].latency.count());
        program.verify(&store).await.unwrap();
    });
}

#[test]
fn a_wrong_byte_and_a_missing_record_are_found() {
    on_store(async |store| {
        let program = loaded(&store, "ycsb-a:records=300").await;
        let table = store.table("usertable").await.unwrap();
        let all = (Bound::Unbounded, Bound::Unbounded);
        let first = store.snapshot().await.scan(table, all, Direction::Forward).next().await.unwrap();
        let (key, value) = first.unwrap();
        let mut wrong = value.clone();
        wrong[999] ^= 1;
        let work = store.begin();
        work.put(table, &key, &wrong).await.unwrap();
        work.commit().await.unwrap();
        assert!(refusal(&program, &store).await.contains("other bytes than were written"));
        let work = store.begin();
        work.delete(table, &key).await.unwrap();
        work.commit().await.unwrap();
        assert_eq!(refusal(&program, &store).await, "`usertable` has 299 rows and should have 300");
    });
}
