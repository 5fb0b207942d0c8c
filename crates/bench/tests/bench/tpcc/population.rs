//! Tests that the initial population follows clause 4.3.3.1 of TPC-C.

use super::{SMALL, rows};
use crate::common::{loaded, on_store};
use fulgurite_bench::tpcc::rows::{
    Customer, District, History, Item, NewOrder, Order, OrderLine, Stock, Warehouse, read_key,
};
use std::collections::BTreeSet;

#[test]
fn one_warehouse_has_the_rows_of_the_specification() {
    on_store(async |store| {
        // The numbers of districts and orders are those of the specification. There are fewer items, to keep
        // the test short.
        loaded(&store, "tpcc:items=1000").await;
        assert_eq!(rows::<Warehouse>(&store).await.len(), 1);
        assert_eq!(rows::<District>(&store).await.len(), 10);
        assert_eq!(rows::<Customer>(&store).await.len(), 30_000);
        assert_eq!(rows::<History>(&store).await.len(), 30_000);
        assert_eq!(rows::<Item>(&store).await.len(), 1_000);
        assert_eq!(rows::<Stock>(&store).await.len(), 1_000);
        assert_eq!(rows::<Order>(&store).await.len(), 30_000);
        assert_eq!(rows::<NewOrder>(&store).await.len(), 9_000);
        let lines = rows::<OrderLine>(&store).await.len();
        // Each order has 5 to 15 lines, so there are 300,000 on average, with a standard deviation of 548.
        assert!((297_000..303_000).contains(&lines), "{lines}");
    });
}

#[test]
fn rows_have_the_sizes_and_values_of_the_specification() {
    on_store(async |store| {
        loaded(&store, SMALL).await;
        for (_, stock) in rows::<Stock>(&store).await {
            assert!((10..=100).contains(&stock.quantity) && (26..=50).contains(&stock.data.len()));
            assert!(stock.districts.iter().all(|info| info.len() == 24));
        }
        let items = rows::<Item>(&store).await;
        assert!(items.iter().all(|(_, item)| (1_00..=100_00).contains(&item.price)));
        let original = items.iter().filter(|(_, item)| item.data.contains("ORIGINAL")).count();
        // The expected number is a tenth of the 200 items.
        assert!((8..=35).contains(&original), "{original}");
        let customers = rows::<Customer>(&store).await;
        for (_, customer) in &customers {
            assert!((300..=500).contains(&customer.data.len()) && (8..=16).contains(&customer.first.len()));
            assert_eq!(
                (customer.balance, customer.ytd_payment, customer.middle.as_str()),
                (-10_00, 10_00, "OE")
            );
            assert!(customer.discount <= 5_000 && customer.phone.len() == 16);
        }
        assert_eq!(customers[0].1.last, "BARBARBAR");
        assert_eq!(customers[12].1.last, "BAROUGHTABLE");
        let warehouses = rows::<Warehouse>(&store).await;
        assert!(
            warehouses.iter().all(|(_, warehouse)| warehouse.tax <= 2_000 && warehouse.ytd == 300_000_00)
        );
    });
}

#[test]
fn every_customer_has_one_order_and_the_last_three_tenths_are_undelivered() {
    on_store(async |store| {
        loaded(&store, SMALL).await;
        let mut customers = BTreeSet::new();
        for (key, order) in rows::<Order>(&store).await {
            let (warehouse, district, number) = read_key(&key).unwrap();
            assert!(customers.insert((warehouse, district, order.customer)));
            assert_eq!(order.carrier == 0, number > 21);
        }
        assert_eq!(customers.len(), 600);
        for (key, line) in rows::<OrderLine>(&store).await {
            let (_, _, number) = read_key(&key[..9]).unwrap();
            assert_eq!((line.delivered == 0, line.amount > 0), (number > 21, number > 21));
        }
    });
}
