//! The Delivery transaction (clause 2.7): the oldest order of each district that was not delivered.

use super::program::Tpcc;
use super::rows::*;
use crate::codec::{Key, Row};
use crate::{Error, Record, Session, Work};
use fulgurite_device::Device;
use fulgurite_engine::Direction;

/// Orders that are looked at in a snapshot, in case others deliver the first of them meanwhile.
const CANDIDATES: usize = 4;

impl Tpcc {
    pub(super) async fn delivery<D: Device + 'static>(
        &self,
        session: &Session<D>,
        warehouse: u32,
        carrier: u8,
    ) -> Result<(), Error> {
        let work = session.begin();
        for district in 1..=DISTRICTS {
            // A district without such orders is skipped.
            if let Some(number) = self.take_oldest(session, &work, warehouse, district).await? {
                self.deliver(session, &work, (warehouse, district, number), carrier).await?;
            }
        }
        work.commit().await
    }

    /// Takes the oldest order that was not delivered out of NEW-ORDER and returns its number.
    async fn take_oldest<D: Device + 'static>(
        &self,
        session: &Session<D>,
        work: &Work<'_, D>,
        warehouse: u32,
        district: u8,
    ) -> Result<Option<u32>, Error> {
        let table = self.tables.new_order;
        let range = district_key(warehouse, district).prefix();
        // Two deliveries that locked the oldest order for reading could not both go on to delete it. So it is looked up
        // in a snapshot and then locked for writing. Order numbers grow, so no older one can come up in between; what is
        // gone by then was delivered by another.
        for (key, _) in session.view().scan(table, &range, Direction::Forward, CANDIDATES).await? {
            let number = number_of(&key)?;
            let key = order_key(warehouse, district, number);
            if work.get_for_update(table, &key).await?.is_some() {
                work.delete(table, &key).await?;
                return Ok(Some(number));
            }
        }
        // The locked look decides: also that there is none.
        let found: Vec<Record> = work.scan(table, &range, Direction::Forward, 1).await?;
        let Some((key, _)) = found.first() else { return Ok(None) };
        let number = number_of(key)?;
        work.delete(table, &order_key(warehouse, district, number)).await?;
        Ok(Some(number))
    }

    /// Notes carrier and time in an order and its lines, and adds their amounts to what the customer owes.
    async fn deliver<D: Device + 'static>(
        &self,
        session: &Session<D>,
        work: &Work<'_, D>,
        (warehouse, district, number): (u32, u8, u32),
        carrier: u8,
    ) -> Result<(), Error> {
        let tables = &self.tables;
        let key = order_key(warehouse, district, number);
        let mut order: Order = work.row_for_update(tables.order, &key).await?;
        order.carrier = carrier;
        work.put_row(tables.order, &key, &order).await?;

        // Nobody else writes the lines of an order that is being delivered, so a lock for reading cannot be in the way.
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
