//! Opens TPC-C's tables and indexes in a store.

use super::rows::*;
use crate::Error;
use crate::codec::{Reader, Row};
use fulgurite_engine::Extract;
use fulgurite_engine::sharded::{Index, Store, Table};
use std::rc::Rc;

/// TPC-C's nine tables and two indexes.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // each is named as its row
pub(crate) struct Tables {
    pub warehouse: Table,
    pub district: Table,
    pub customer: Table,
    pub history: Table,
    pub new_order: Table,
    pub order: Table,
    pub order_line: Table,
    pub item: Table,
    pub stock: Table,
    /// The index of customers by last and first name.
    pub names: Index,
    /// The index of orders by customer and order number.
    pub orders_of: Index,
}

impl Tables {
    /// Opens the tables and indexes. If an index does not exist, it is created, as at the end of the load.
    pub(crate) async fn open(store: &Store) -> Result<Tables, Error> {
        let customer = store.table(Customer::TABLE).await?;
        let order = store.table(Order::TABLE).await?;
        Ok(Tables {
            warehouse: store.table(Warehouse::TABLE).await?,
            district: store.table(District::TABLE).await?,
            customer,
            history: store.table(History::TABLE).await?,
            new_order: store.table(NewOrder::TABLE).await?,
            order,
            order_line: store.table(OrderLine::TABLE).await?,
            item: store.table(Item::TABLE).await?,
            stock: store.table(Stock::TABLE).await?,
            names: store.create_index(customer, "customer.name", Self::name_of_customer()).await?,
            orders_of: store.create_index(order, "order.customer", Self::customer_of_order()).await?,
        })
    }

    fn name_of_customer() -> Extract {
        Rc::new(|key, value, keys: &mut Vec<Vec<u8>>| {
            // A row that cannot be decoded gets no index entry, and a read of the row reports the error. The
            // names are the first two fields, so an update of a customer need not decode all fields.
            let mut value = Reader::new(value);
            let (last, first) = (value.field::<String>(), value.field::<String>());
            if let (Some((warehouse, district, _)), Some(last), Some(first)) = (read_key(key), last, first) {
                keys.push(name_key(warehouse, district, &last).text(&first, 16).into_bytes());
            }
        })
    }

    fn customer_of_order() -> Extract {
        Rc::new(|key, value, keys: &mut Vec<Vec<u8>>| {
            // The customer is the first field of an order, so the other fields need not be decoded.
            let customer = Reader::new(value).field::<u32>();
            if let (Some((warehouse, district, order)), Some(customer)) = (read_key(key), customer) {
                keys.push(orders_of_key(warehouse, district, customer).u32(order).into_bytes());
            }
        })
    }
}
