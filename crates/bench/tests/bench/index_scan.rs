//! Tests of the index scan: ranges, both columns, and verification.

use crate::common::{config, loaded, on_store, refusal, run};
use fulgurite_base::Prng;
use fulgurite_bench::index_scan::Request;
use fulgurite_bench::{Benchmark, Program};
use std::ops::RangeBounds;

#[test]
fn ranges_cover_their_share_and_are_inside_the_column() {
    on_store(async |store| {
        let program = loaded(&store, "index-scan:orders=500,share=10%").await;
        let Program::IndexScan(scan) = program else { panic!("not an index scan") };
        let mut prng = Prng::new(1, "ranges");
        for _ in 0..5_000 {
            let request = scan.draw(&mut prng);
            // The range covers a tenth of the 2,406 days: 240 days, both ends included.
            assert_eq!(request.last - request.first, 239);
            assert!(request.last < 2_406);
        }
    });
}

#[test]
fn both_ends_of_a_range_belong_to_it() {
    let keys = Request { first: 5, last: 300 }.keys();
    let inside = |value: u32| keys.bounds().contains(&value.to_be_bytes()[..]);
    assert_eq!([4, 5, 300, 301].map(inside), [false, true, true, false]);
}

#[test]
fn both_columns_can_be_scanned() {
    for column in ["orderdate", "custkey"] {
        on_store(async move |store| {
            let program = loaded(&store, &format!("index-scan:orders=600,column={column},share=5%")).await;
            let outcome = run(&program, &store, 100).await;
            assert_eq!((outcome.transactions(), outcome.commit_latency.count()), (100, 0));
            assert_eq!(program.verify(&store).await.unwrap().rows, 600);
            // Data with an index over the other column are different data, so they are refused.
            let other = if column == "custkey" { "orderdate" } else { "custkey" };
            assert!(config(&format!("index-scan:orders=600,column={other}")).open(&store).await.is_err());
        });
    }
}

#[test]
fn a_missing_order_is_found() {
    on_store(async |store| {
        let program = loaded(&store, "index-scan:orders=600").await;
        let table = store.table("orders").await.unwrap();
        let work = store.begin();
        work.delete(table, &1u64.to_be_bytes()).await.unwrap();
        work.commit().await.unwrap();
        let sentence = refusal(&program, &store).await;
        assert_eq!(sentence, "`orders` has 599 rows and should have 600");
    });
}
