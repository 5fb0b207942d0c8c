//! Executes TPC-C's Payment transaction (clause 2.5), which books a customer's payment to a warehouse and a
//! district.

use super::program::Tpcc;
use super::request::Customers;
use super::rows::*;
use crate::{Error, Session};

/// The most characters of the column C_DATA.
const DATA_MOST: usize = 500;

impl Tpcc {
    pub(super) async fn payment(
        &self,
        session: &Session,
        number: u64,
        (warehouse, district): (u32, u8),
        customers: &Customers,
        amount: i64,
    ) -> Result<(), Error> {
        let tables = &self.tables;
        // No transaction changes a name, so a snapshot finds the right customer without locks.
        let customer = self.customer(&session.view_of_each(), customers).await?;

        let work = session.begin();
        let key = warehouse_key(warehouse);
        let mut home: Warehouse = work.row_for_update(tables.warehouse, &key).await?;
        home.ytd += amount;
        work.put_row(tables.warehouse, &key, &home).await?;

        let key = district_key(warehouse, district);
        let mut own: District = work.row_for_update(tables.district, &key).await?;
        own.ytd += amount;
        work.put_row(tables.district, &key, &own).await?;

        let key = customer_key(customers.warehouse, customers.district, customer);
        let mut payer: Customer = work.row_for_update(tables.customer, &key).await?;
        payer.balance -= amount;
        payer.ytd_payment += amount;
        payer.payments = payer.payments.wrapping_add(1);
        if payer.credit == "BC" {
            let Customers { warehouse: home, district: own, .. } = customers;
            // By clause 2.5.2.2, the numbers of the payment are inserted at the front of C_DATA, and C_DATA
            // is cut to its limit.
            payer.data = format!("{customer} {own} {home} {district} {warehouse} {amount} {}", payer.data);
            payer.data.truncate(DATA_MOST);
        }
        work.put_row(tables.customer, &key, &payer).await?;

        let row = History {
            customer,
            customer_district: customers.district,
            customer_warehouse: customers.warehouse,
            district,
            warehouse,
            date: session.now().0 + 1,
            amount,
            data: format!("{}    {}", home.name, own.name),
        };
        work.put_row(tables.history, &history_key(number), &row).await?;
        work.commit().await
    }
}
