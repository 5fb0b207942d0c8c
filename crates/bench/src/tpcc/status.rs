//! Executes TPC-C's transactions Order-Status (clause 2.6) and Stock-Level (clause 2.8), which only read,
//! each in one snapshot.

use super::program::Tpcc;
use super::request::Customers;
use super::rows::*;
use crate::codec::{Key, Row};
use crate::{Error, Session};
use fulgurite_engine::Direction;
use std::collections::BTreeSet;

/// The number of a district's latest orders whose items Stock-Level checks.
const LATEST: u32 = 20;

impl Tpcc {
    /// Reads the last order of a customer and the lines of the order.
    pub(super) async fn order_status(&self, session: &Session, customers: &Customers) -> Result<(), Error> {
        let (tables, view) = (&self.tables, session.view().await);
        let Customers { warehouse, district, .. } = *customers;
        let customer = self.customer(&view, customers).await?;
        let _: Customer = view.row(tables.customer, &customer_key(warehouse, district, customer)).await?;
        let range = orders_of_key(warehouse, district, customer).prefix();
        let last = view.index_scan(tables.orders_of, &range, Direction::Backward, 1).await?;
        // The load gives every customer an order, so an order must be found.
        let missing = || Error::row(Order::TABLE, format!("is missing (of customer {customer})"));
        let last = last.first().ok_or_else(missing)?;
        let order = Order::decode(&last.value)?;
        let (_, _, number) = read_key(&last.key).ok_or_else(missing)?;
        let range = order_key(warehouse, district, number).prefix();
        let lines = view.scan(tables.order_line, &range, Direction::Forward, usize::MAX).await?;
        lines.iter().try_for_each(|(_, line)| OrderLine::decode(line).map(drop))?;
        match lines.len() == usize::from(order.lines) {
            true => Ok(()),
            false => Err(Error::Broken(format!(
                "order {number} of warehouse {warehouse}, district {district} should have {} lines and has {}",
                order.lines,
                lines.len()
            ))),
        }
    }

    /// Counts the items in a district's last 20 orders whose stock is below the threshold.
    pub(super) async fn stock_level(
        &self,
        session: &Session,
        warehouse: u32,
        district: u8,
        threshold: i64,
    ) -> Result<(), Error> {
        let (tables, view) = (&self.tables, session.view().await);
        let own: District = view.row(tables.district, &district_key(warehouse, district)).await?;
        let first = order_key(warehouse, district, own.next_order.saturating_sub(LATEST));
        let range = first.until(order_key(warehouse, district, own.next_order));
        let lines = view.scan(tables.order_line, &range, Direction::Forward, usize::MAX).await?;
        let items: Result<BTreeSet<u32>, Error> =
            lines.iter().map(|(_, line)| OrderLine::decode(line).map(|line| line.item)).collect();
        let keys: Vec<Key> = items?.into_iter().map(|item| stock_key(warehouse, item)).collect();
        let mut low = 0;
        for stock in view.get_many(tables.stock, &keys).await? {
            low += u32::from(Stock::found(stock)?.quantity < threshold);
        }
        std::hint::black_box(low);
        Ok(())
    }
}
