//! Tests of TPC-C's consistency conditions: they hold after a run, and the change of one row breaks each of
//! them.

use super::{SMALL, delete, put, row, rows};
use crate::common::{MemStore, loaded, on_store, plan, refusal, unwatched};
use fulgurite_bench::tpcc::rows::{
    District, NewOrder, Order, OrderLine, Warehouse, district_key, line_key, order_key, warehouse_key,
};
use fulgurite_bench::{Extent, Plan, tpcc};

#[test]
fn the_conditions_hold_after_a_run_by_many_users() {
    on_store(async |store| {
        let program = loaded(&store, SMALL).await;
        let plan = Plan { users: 20, stop: Extent::Ops(2_000), ..plan(0) };
        let outcome = program.run(&store, &plan, || (), &unwatched()).await.unwrap();
        let verified = program.verify(&store).await.unwrap();
        let placed = outcome.kinds[0].latency.count() - outcome.figures().rollbacks();
        assert!(placed > 700, "{placed}");
        // The load has two warehouses with ten districts and 30 orders each. The new orders are added to
        // these.
        assert_eq!(verified.changes, 600 + placed);
        assert_eq!(verified, tpcc::verify(&store).await.unwrap());
        let delivered =
            rows::<Order>(&store).await.iter().filter(|(_, order)| order.carrier > 0).count() as u64;
        assert!(delivered > 420, "{delivered}");
        assert_eq!(rows::<NewOrder>(&store).await.len() as u64, 600 + placed - delivered);
    });
}

/// Changes a loaded store with `change`. Returns the error message of the verification.
fn broken(change: impl AsyncFnOnce(&MemStore) + 'static) -> String {
    on_store(async move |store| {
        let program = loaded(&store, SMALL).await;
        program.verify(&store).await.unwrap();
        change(&store).await;
        refusal(&program, &store).await
    })
}

#[test]
fn condition_1_money_of_a_warehouse_and_its_districts() {
    let sentence = broken(async |store| {
        let mut warehouse: Warehouse = row(store, warehouse_key(2)).await;
        warehouse.ytd += 1;
        put(store, warehouse_key(2), &warehouse).await;
    });
    assert_eq!(
        sentence,
        "TPC-C's consistency condition 1 is broken in warehouse 2: W_YTD is 30000001 and the sum of D_YTD is 30000000"
    );
}

#[test]
fn condition_2_the_next_order_of_a_district() {
    let sentence = broken(async |store| {
        let mut district: District = row(store, district_key(1, 4)).await;
        district.next_order += 1;
        put(store, district_key(1, 4), &district).await;
    });
    assert_eq!(
        sentence,
        "TPC-C's consistency condition 2 is broken in warehouse 1, district 4: D_NEXT_O_ID is 32 and the greatest \
         O_ID is 30"
    );
}

#[test]
fn condition_2_the_last_order_that_waits() {
    let sentence = broken(async |store| delete::<NewOrder>(store, order_key(1, 4, 30)).await);
    assert_eq!(
        sentence,
        "TPC-C's consistency condition 2 is broken in warehouse 1, district 4: D_NEXT_O_ID is 31 and the greatest \
         NO_O_ID is 29"
    );
}

#[test]
fn condition_3_no_gap_in_the_orders_that_wait() {
    let sentence = broken(async |store| delete::<NewOrder>(store, order_key(2, 10, 25)).await);
    assert_eq!(
        sentence,
        "TPC-C's consistency condition 3 is broken in warehouse 2, district 10: NO_O_ID goes from 22 to 30 and there \
         are 8 rows"
    );
}

#[test]
fn condition_4_the_lines_of_all_orders() {
    let sentence = broken(async |store| delete::<OrderLine>(store, line_key(1, 1, 7, 3)).await);
    assert!(
        sentence
            .starts_with("TPC-C's consistency condition 4 is broken in warehouse 1, district 1: the sum of"),
        "{sentence}"
    );
}
