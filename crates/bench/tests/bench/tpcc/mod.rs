//! Tests of TPC-C: the load, the inputs, the transactions and the consistency conditions.

// Amounts of money are in cents, so 10_00 is ten dollars, and digits are not grouped by thousands.
#![allow(clippy::inconsistent_digit_grouping)]

mod conditions;
mod inputs;
mod population;
mod transactions;

use crate::common::MemStore;
use fulgurite_bench::Program;
use fulgurite_bench::codec::{Key, Row};
use fulgurite_bench::tpcc::Tpcc;
use std::rc::Rc;

/// A benchmark with two warehouses and few customers and items.
pub(crate) const SMALL: &str = "tpcc:warehouses=2,customers=30,items=200";

pub(crate) fn tpcc(program: &Program) -> Rc<Tpcc> {
    match program {
        Program::Tpcc(tpcc) => Rc::clone(tpcc),
        _ => panic!("not TPC-C"),
    }
}

pub(crate) async fn row<R: Row>(store: &MemStore, key: Key) -> R {
    let table = store.table(R::TABLE).await.unwrap();
    R::found(store.snapshot().await.get(table, key.bytes()).await.unwrap()).unwrap()
}

pub(crate) async fn put<R: Row>(store: &MemStore, key: Key, row: &R) {
    let table = store.table(R::TABLE).await.unwrap();
    let work = store.begin();
    work.put(table, key.bytes(), &row.encode()).await.unwrap();
    work.commit().await.unwrap();
}

pub(crate) async fn delete<R: Row>(store: &MemStore, key: Key) {
    let table = store.table(R::TABLE).await.unwrap();
    let work = store.begin();
    work.delete(table, key.bytes()).await.unwrap();
    work.commit().await.unwrap();
}

/// Returns all rows of a table with their keys.
pub(crate) async fn rows<R: Row>(store: &MemStore) -> Vec<(Vec<u8>, R)> {
    use fulgurite_engine::Direction;
    use std::ops::Bound;
    let table = store.table(R::TABLE).await.unwrap();
    let snapshot = store.snapshot().await;
    let mut scan = snapshot.scan(table, (Bound::Unbounded, Bound::Unbounded), Direction::Forward);
    let mut rows = Vec::new();
    while let Some((key, value)) = scan.next().await.unwrap() {
        rows.push((key, R::decode(&value).unwrap()));
    }
    rows
}
