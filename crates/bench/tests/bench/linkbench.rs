//! Tests of LinkBench: the mix of Armstrong et al. (SIGMOD 2013), and counts that equal the visible links.

use crate::common::{MemStore, check_mix, loaded, on_store, refusal, run};
use fulgurite_base::Prng;
use fulgurite_bench::codec::{Key, Row};
use fulgurite_bench::linkbench::{Count, Link, Request};
use fulgurite_bench::{Benchmark, Program};
use fulgurite_engine::Direction;
use std::ops::Bound;

const TEXT: &str = "linkbench:ids=400";

#[test]
fn the_mix_equals_that_of_the_paper() {
    on_store(async |store| {
        let Program::LinkBench(linkbench) = loaded(&store, TEXT).await else { panic!("not LinkBench") };
        let shares = [50.71, 12.93, 8.99, 8.01, 7.37, 4.89, 2.99, 2.57, 1.01, 0.53];
        check_mix(&*linkbench, &shares);
        assert_eq!(linkbench.kinds()[0], "get-links-list");
        assert_eq!(linkbench.kinds()[9], "get-link");
    });
}

#[test]
fn requests_for_single_links_name_a_geometric_number_of_them() {
    on_store(async |store| {
        let Program::LinkBench(linkbench) = loaded(&store, TEXT).await else { panic!("not LinkBench") };
        let mut prng = Prng::new(1, "links");
        let named: Vec<usize> = (0..200_000)
            .filter_map(|_| match linkbench.draw(&mut prng) {
                Request::GetLink { others, .. } => Some(others.len()),
                _ => None,
            })
            .collect();
        let mean = named.iter().sum::<usize>() as f64 / named.len() as f64;
        // The mean of the geometric distribution is 1 / 0.382 = 2.62. The test has about a thousand draws of
        // standard deviation 2.06, so 0.33 is five standard deviations of their mean.
        assert!((mean - 2.618).abs() < 0.33, "{mean} of {}", named.len());
    });
}

#[test]
fn payloads_have_their_medians() {
    on_store(async |store| {
        loaded(&store, TEXT).await;
        for (table, header, median) in [("node", 22, 128), ("link", 15, 8)] {
            let table = store.table(table).await.unwrap();
            let snapshot = store.snapshot().await;
            let mut scan = snapshot.scan(table, (Bound::Unbounded, Bound::Unbounded), Direction::Forward);
            let mut sizes = Vec::new();
            while let Some((_, value)) = scan.next().await.unwrap() {
                sizes.push(value.len() - header);
            }
            sizes.sort_unstable();
            let found = sizes[sizes.len() / 2];
            assert!((median * 8 / 10..=median * 12 / 10).contains(&found), "{found} {median}");
        }
    });
}

#[test]
fn counts_equal_links_after_a_run_that_changes_both() {
    on_store(async |store| {
        let program = loaded(&store, TEXT).await;
        let before = program.verify(&store).await.unwrap();
        // The load has 400 nodes with two types of links, and each node has two links of a type on average.
        // So about 1,600 links are expected.
        assert!((1_200..2_200).contains(&before.changes), "{before:?}");
        let outcome = run(&program, &store, 1_500).await;
        let after = program.verify(&store).await.unwrap();
        assert_ne!(after.changes, before.changes);
        assert!(outcome.kinds[6].latency.count() > 10);
    });
}

/// Changes a loaded store with `change`. Returns the error message of the verification.
fn broken(change: impl AsyncFnOnce(&MemStore) + 'static) -> String {
    on_store(async move |store| {
        let program = loaded(&store, TEXT).await;
        change(&store).await;
        refusal(&program, &store).await
    })
}

async fn put(store: &MemStore, table: &str, key: &[u8], value: &[u8]) {
    let table = store.table(table).await.unwrap();
    let work = store.begin();
    work.put(table, key, value).await.unwrap();
    work.commit().await.unwrap();
}

async fn first(store: &MemStore, table: &str) -> (Vec<u8>, Vec<u8>) {
    let table = store.table(table).await.unwrap();
    let all = (Bound::Unbounded, Bound::Unbounded);
    store.snapshot().await.scan(table, all, Direction::Forward).next().await.unwrap().unwrap()
}

#[test]
fn a_wrong_count_is_found() {
    let sentence = broken(async |store| {
        let (key, value) = first(store, "count").await;
        let count = Count::decode(&value).unwrap();
        put(store, "count", &key, &Count { count: count.count + 1, ..count }.encode()).await;
    });
    assert!(sentence.contains("visible links of type 0, and its count says"), "{sentence}");
}

#[test]
fn an_invisible_link_that_is_still_counted_is_found() {
    let sentence = broken(async |store| {
        let (key, value) = first(store, "link").await;
        let link = Link::decode(&value).unwrap();
        put(store, "link", &key, &Link { visible: 0, ..link }.encode()).await;
    });
    assert!(sentence.contains("visible links of type 0, and its count says"), "{sentence}");
}

#[test]
fn a_link_without_a_count_is_found() {
    let sentence = broken(async |store| {
        let link = Link { visible: 1, version: 0, time: 1, data: String::new() };
        // No node has this id, so there is no count for the link.
        put(store, "link", Key::new().u64(9_999).u32(1).u64(1).bytes(), &link.encode()).await;
    });
    assert_eq!(sentence, "node 9999 has 1 visible links of type 1, and its count says 0");
}

#[test]
fn a_count_without_links_is_found() {
    let sentence = broken(async |store| {
        let count = Count { count: 1, version: 0 };
        put(store, "count", Key::new().u64(9_999).u32(1).bytes(), &count.encode()).await;
    });
    assert_eq!(sentence, "node 9999 has 0 visible links of type 1, and its count says 1");
}
