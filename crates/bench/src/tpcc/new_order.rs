//! Executes TPC-C's New-Order transaction (clause 2.4), which places an order of several items.

use super::program::Tpcc;
use super::request::Line;
use super::rows::*;
use crate::codec::{Key, Row};
use crate::{Ending, Error, Session, Work};

impl Tpcc {
    pub(super) async fn new_order(
        &self,
        session: &Session,
        warehouse: u32,
        district: u8,
        customer: u32,
        lines: &[Line],
    ) -> Result<Ending, Error> {
        let tables = &self.tables;
        // These rows are read from snapshots, because the needed columns never change: W_TAX, C_DISCOUNT,
        // C_LAST, C_CREDIT and those of the items.
        let view = session.view_of_each();
        let home: Warehouse = view.row(tables.warehouse, &warehouse_key(warehouse)).await?;
        let buyer: Customer = view.row(tables.customer, &customer_key(warehouse, district, customer)).await?;
        let keys: Vec<Key> = lines.iter().map(|line| item_key(line.item)).collect();
        let items = view.get_many(tables.item, &keys).await?;
        let items = items.into_iter().map(|item| item.map(|item| Item::decode(&item)).transpose());
        let items: Vec<Option<Item>> = items.collect::<Result<_, Error>>()?;

        let work = session.begin();
        let place = district_key(warehouse, district);
        let mut own: District = work.row_for_update(tables.district, &place).await?;
        let number = own.next_order;
        own.next_order += 1;
        work.put_row(tables.district, &place, &own).await?;
        let order = Order {
            customer,
            // Zero means "no time", so the time is counted from one.
            entry: session.now().0 + 1,
            carrier: 0,
            lines: lines.len() as u8,
            all_local: lines.iter().all(|line| line.supplier == warehouse).into(),
        };
        let key = order_key(warehouse, district, number);
        work.put_row(tables.order, &key, &order).await?;
        work.put_row(tables.new_order, &key, &NewOrder {}).await?;

        let infos = self.take_from_stocks(&work, warehouse, district, lines, &items).await?;
        let mut total = 0;
        for (index, (line, info)) in lines.iter().zip(infos).enumerate() {
            // An item that does not exist is always the last one. So the order is rolled back only after all
            // other items were processed, as the specification demands.
            let (Some(item), Some(info)) = (&items[index], info) else { return Ok(Ending::RolledBack) };
            let amount = i64::from(line.quantity) * item.price;
            total += amount;
            let (item, supplier, quantity) = (line.item, line.supplier, line.quantity);
            let row = OrderLine { item, supplier, delivered: 0, quantity, amount, info };
            work.put_row(tables.order_line, &line_key(warehouse, district, number, index as u8 + 1), &row)
                .await?;
        }
        std::hint::black_box(total_amount(total, buyer.discount, home.tax, own.tax));
        work.commit().await?;
        Ok(Ending::Committed)
    }

    /// Subtracts the quantities of all lines from the stocks. Returns the S_DIST of each line; `None` for an
    /// item that does not exist.
    async fn take_from_stocks(
        &self,
        work: &Work<'_>,
        warehouse: u32,
        district: u8,
        lines: &[Line],
        items: &[Option<Item>],
    ) -> Result<Vec<Option<String>>, Error> {
        let mut infos = vec![None; lines.len()];
        let mut order: Vec<usize> = (0..lines.len()).filter(|index| items[*index].is_some()).collect();
        // All transactions lock stocks in the same order, so that no two of them can wait for each other.
        order.sort_by_key(|index| (lines[*index].supplier, lines[*index].item));
        for index in order {
            let Line { item, supplier, quantity } = lines[index];
            let key = stock_key(supplier, item);
            let mut stock: Stock = work.row_for_update(self.tables.stock, &key).await?;
            let left = stock.quantity - i64::from(quantity);
            // By clause 2.4.2.2, 91 items are added if fewer than ten would be left.
            stock.quantity = if left >= 10 { left } else { left + 91 };
            stock.ytd = stock.ytd.wrapping_add(quantity.into());
            stock.orders = stock.orders.wrapping_add(1);
            stock.remote = stock.remote.wrapping_add(u16::from(supplier != warehouse));
            work.put_row(self.tables.stock, &key, &stock).await?;
            infos[index] = stock.districts.get(usize::from(district) - 1).cloned();
        }
        Ok(infos)
    }
}

/// Returns the total amount of an order in cents. Discount and taxes are in ten thousandths.
fn total_amount(sum: i64, discount: u32, warehouse_tax: u32, district_tax: u32) -> i64 {
    let discounted = sum * i64::from(10_000 - discount) / 10_000;
    discounted * i64::from(10_000 + warehouse_tax + district_tax) / 10_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_has_the_discount_and_both_taxes() {
        // 200.00 less 10 % is 180.00, and 5 % and 15 % on top make 216.00.
        assert_eq!(total_amount(200_00, 1_000, 500, 1_500), 216_00);
    }
}
