//! Executes TPC-C's Delivery transaction (clause 2.7), which delivers the oldest undelivered order of each
//! district.

use super::program::Tpcc;
use super::rows::*;
use crate::codec::{Key, Row};
use crate::{Error, Record, Session, Work};
use fulgurite_engine::Direction;

/// The number of oldest orders that are read from a snapshot. It is more than one, because concurrent
/// transactions may deliver the first of them.
const CANDIDATES: usize = 4;

impl Tpcc {
    pub(super) async fn delivery(&self, session: &Session, warehouse: u32, carrier: u8) -> Result<(), Error> {
        let work = session.begin();
        for district in 1..=DISTRICTS {
            // A district without undelivered orders is skipped (clause 2.7.4.2).
            if let Some(number) = self.take_oldest(session, &work, warehouse, district).await? {
                self.deliver(session, &work, (warehouse, district, number), carrier).await?;
            }
        }
        work.commit().await
    }

    /// Removes the oldest undelivered order of a district from NEW-ORDER and returns its number; `None` if
    /// there is no such order.
    async fn take_oldest(
        &self,
        session: &Session,
        work: &Work<'_>,
        warehouse: u32,
        district: u8,
    ) -> Result<Option<u32>, Error> {
        let table = self.tables.new_order;
        let range = district_key(warehouse, district).prefix();
        // If two deliveries locked the oldest order with shared locks, neither could delete it. So the order
        // is looked up in a snapshot, without locks, and then locked exclusively. Order numbers increase, so
        // no older order can be inserted in between. An order that is missing when it is locked was delivered
        // by another transaction.
        for (key, _) in session.view_of_each().scan(table, &range, Direction::Forward, CANDIDATES).await? {
            let number = number_of(&key)?;
            let key = order_key(warehouse, district, number);
            if work.get_for_update(table, &key).await?.is_some() {
                work.delete(table, &key).await?;
                return Ok(Some(number));
            }
        }
        // The orders of the snapshot were all delivered by others. Only a scan with locks can decide that
        // there is no undelivered order.
        let found: Vec<Record> = work.scan(table, &range, Direction::Forward, 1).await?;
        let Some((key, _)) = found.first() else { return Ok(None) };
        let number = number_of(key)?;
        work.delete(table, &order_key(warehouse, district, number)).await?;
        Ok(Some(number))
    }

    /// Sets the carrier of an order and the delivery time of its lines, and adds the amounts of the lines to
    /// the customer's balance.
    async fn deliver(
        &self,
        session: &Session,
        work: &Work<'_>,
        (warehouse, district, number): (u32, u8, u32),
        carrier: u8,
    ) -> Result<(), Error> {
        let tables = &self.tables;
        let key = order_key(warehouse, district, number);
        let mut order: Order = work.row_for_update(tables.order, &key).await?;
        order.carrier = carrier;
        work.put_row(tables.order, &key, &order).await?;

        // No other transaction writes the lines of an order that is being delivered, so the lines are read
        // with shared locks, and their writes cause no conflict.
        let keys: Vec<Key> =
            (1..=order.lines).map(|line| line_key(warehouse, district, number, line)).collect();
        let (mut amount, now) = (0, session.now().0 + 1);
        for (key, line) in keys.iter().zip(work.get_many(tables.order_line, &keys).await?) {
            let mut line = OrderLine::found(line)?;
            amount += line.amount;
            line.delivered = now;
            work.put_row(tables.order_line, key, &line).await?;
        }

        let key = customer_key(warehouse, district, order.customer);
        let mut customer: Customer = work.row_for_update(tables.customer, &key).await?;
        customer.balance += amount;
        customer.deliveries = customer.deliveries.wrapping_add(1);
        work.put_row(tables.customer, &key, &customer).await
    }
}

fn number_of(key: &[u8]) -> Result<u32, Error> {
    let (_, _, number) = read_key(key).ok_or_else(|| Error::row(NewOrder::TABLE, "has a wrong key"))?;
    Ok(number)
}
