//! Tests that the drawn inputs of the transactions follow clauses 2.4.1 to 2.8.1 of TPC-C.

use super::{SMALL, tpcc};
use crate::common::{check_mix, loaded, on_store};
use fulgurite_base::Prng;
use fulgurite_bench::Benchmark;
use fulgurite_bench::tpcc::{Request, Who};

/// The number of requests that a test draws.
const DRAWS: usize = 100_000;

fn drawn() -> Vec<Request> {
    on_store(async |store| {
        let tpcc = tpcc(&loaded(&store, SMALL).await);
        let mut prng = Prng::new(1, "inputs");
        (0..DRAWS).map(|_| tpcc.draw(&mut prng)).collect()
    })
}

/// Checks that `part` of `all` is a share of `percent`, to five standard deviations.
fn check_share(part: usize, all: usize, percent: f64) {
    let (share, all) = (percent / 100.0, all as f64);
    let deviation = (share * (1.0 - share) * all).sqrt();
    assert!((part as f64 - share * all).abs() < 5.0 * deviation, "{part} of {all} are not {percent} %");
}

#[test]
fn the_mix_is_45_43_4_4_4() {
    on_store(async |store| {
        let tpcc = tpcc(&loaded(&store, SMALL).await);
        check_mix(&*tpcc, &[45.0, 43.0, 4.0, 4.0, 4.0]);
        assert_eq!(tpcc.kinds(), ["new-order", "payment", "order-status", "delivery", "stock-level"]);
    });
}

#[test]
fn new_orders_have_5_to_15_lines_some_remote_and_some_with_an_unused_item() {
    let (mut orders, mut wrong, mut remote, mut counts) = (0, 0, 0, vec![0; 16]);
    let mut all = 0;
    for request in drawn() {
        let Request::NewOrder { warehouse, lines, .. } = request else { continue };
        orders += 1;
        counts[lines.len()] += 1;
        all += lines.len();
        remote += lines.iter().filter(|line| line.supplier != warehouse).count();
        let (last, others) = lines.split_last().unwrap();
        wrong += usize::from(last.item == 201);
        assert!(
            others.iter().all(|line| (1..=200).contains(&line.item) && (1..=10).contains(&line.quantity))
        );
    }
    check_share(wrong, orders, 1.0);
    check_share(remote, all, 1.0);
    counts[5..].iter().for_each(|count| check_share(*count, orders, 100.0 / 11.0));
    assert_eq!(counts[..5].iter().sum::<usize>(), 0);
}

#[test]
fn payments_are_remote_and_by_name_as_often_as_specified() {
    let (mut payments, mut remote, mut by_name) = (0, 0, 0);
    for request in drawn() {
        let Request::Payment { warehouse, district, customers, amount, .. } = request else { continue };
        payments += 1;
        let elsewhere = customers.warehouse != warehouse;
        // A customer of the same warehouse is also of the same district.
        assert!(elsewhere || customers.district == district);
        remote += usize::from(elsewhere);
        by_name += usize::from(matches!(customers.who, Who::Name(_)));
        assert!((1_00..=5_000_00).contains(&amount));
    }
    check_share(remote, payments, 15.0);
    check_share(by_name, payments, 60.0);
}
