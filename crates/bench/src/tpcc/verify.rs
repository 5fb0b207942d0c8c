//! Verifies TPC-C's consistency conditions 1 to 4 (clauses 3.3.2.1 to 3.3.2.4).

use super::rows::*;
use crate::codec::{KeyRange, Reader, Row};
use crate::{Error, Verified};
use fulgurite_engine::Direction;
use fulgurite_engine::sharded::{Snapshot, Store, Table};

/// A snapshot, and the tables on which the conditions depend.
struct Checked {
    snapshot: Snapshot,
    warehouse: Table,
    district: Table,
    new_order: Table,
    order: Table,
    order_line: Table,
}

/// Checks the consistency conditions 1 to 4 in one snapshot of a store. The check reads no index, so it can
/// also be used after a crash.
///
/// 1. W_YTD is the sum of D_YTD of the warehouse's districts.
/// 2. D_NEXT_O_ID minus one is the greatest order number of the district, and the greatest one in NEW-ORDER.
/// 3. The order numbers of a district in NEW-ORDER are consecutive.
/// 4. The sum of O_OL_CNT of a district's orders is the number of its order lines.
///
/// Fails with an error that names the broken condition, the warehouse and the district.
pub async fn verify(store: &Store) -> Result<Verified, Error> {
    let checked = Checked {
        snapshot: store.snapshot().await,
        warehouse: store.table(Warehouse::TABLE).await?,
        district: store.table(District::TABLE).await?,
        new_order: store.table(NewOrder::TABLE).await?,
        order: store.table(Order::TABLE).await?,
        order_line: store.table(OrderLine::TABLE).await?,
    };
    let mut verified = Verified::default();
    let mut warehouses = checked.snapshot.scan(checked.warehouse, KeyRange::ALL.bounds(), Direction::Forward);
    while let Some((key, value)) = warehouses.next().await? {
        let number = Reader::new(&key).key_u32();
        let number = number.ok_or_else(|| Error::row(Warehouse::TABLE, "has a key of a wrong length"))?;
        let row = Warehouse::decode(&value)?;
        verified.rows += 1;
        checked.warehouse(number, &row, &mut verified).await?;
    }
    Ok(verified)
}

impl Checked {
    async fn warehouse(&self, number: u32, row: &Warehouse, verified: &mut Verified) -> Result<(), Error> {
        let mut sum = 0;
        for district in 1..=DISTRICTS {
            let found = self.snapshot.get(self.district, district_key(number, district).bytes()).await?;
            let own = District::found(found)?;
            sum += own.ytd;
            verified.rows += 1;
            self.orders(number, district, &own, verified).await?;
            self.waiting(number, district, &own, verified).await?;
        }
        match sum == row.ytd {
            true => Ok(()),
            false => {
                Err(broken(1, number, None, format!("W_YTD is {} and the sum of D_YTD is {sum}", row.ytd)))
            }
        }
    }

    /// Checks condition 4, and the half of condition 2 about ORDER.
    async fn orders(
        &self,
        warehouse: u32,
        district: u8,
        own: &District,
        verified: &mut Verified,
    ) -> Result<(), Error> {
        let range = district_key(warehouse, district).prefix();
        let (mut last, mut lines, mut found) = (0, 0, 0);
        let mut scan = self.snapshot.scan(self.order, range.bounds(), Direction::Forward);
        while let Some((key, value)) = scan.next().await? {
            last = number_of(&key, Order::TABLE)?;
            lines += u64::from(Order::decode(&value)?.lines);
            verified.rows += 1;
            verified.changes += 1;
        }
        if own.next_order != last + 1 {
            let what = format!("D_NEXT_O_ID is {} and the greatest O_ID is {last}", own.next_order);
            return Err(broken(2, warehouse, Some(district), what));
        }
        let mut scan = self.snapshot.scan(self.order_line, range.bounds(), Direction::Forward);
        while let Some((_, value)) = scan.next().await? {
            OrderLine::decode(&value)?;
            found += 1;
            verified.rows += 1;
        }
        match found == lines {
            true => Ok(()),
            false => {
                let what = format!("the sum of O_OL_CNT is {lines} and there are {found} order lines");
                Err(broken(4, warehouse, Some(district), what))
            }
        }
    }

    /// Checks condition 3, and the half of condition 2 about NEW-ORDER. Without undelivered orders both hold.
    async fn waiting(
        &self,
        warehouse: u32,
        district: u8,
        own: &District,
        verified: &mut Verified,
    ) -> Result<(), Error> {
        let range = district_key(warehouse, district).prefix();
        let (mut first, mut last, mut count) = (0, 0, 0);
        let mut scan = self.snapshot.scan(self.new_order, range.bounds(), Direction::Forward);
        while let Some((key, _)) = scan.next().await? {
            last = number_of(&key, NewOrder::TABLE)?;
            first = if count == 0 { last } else { first };
            count += 1;
            verified.rows += 1;
        }
        if count > 0 && own.next_order != last + 1 {
            let what = format!("D_NEXT_O_ID is {} and the greatest NO_O_ID is {last}", own.next_order);
            return Err(broken(2, warehouse, Some(district), what));
        }
        if count > 0 && last - first + 1 != count {
            let what = format!("NO_O_ID goes from {first} to {last} and there are {count} rows");
            return Err(broken(3, warehouse, Some(district), what));
        }
        Ok(())
    }
}

fn number_of(key: &[u8], table: &str) -> Result<u32, Error> {
    read_key(key).map(|(_, _, number)| number).ok_or_else(|| Error::row(table, "has a wrong key"))
}

fn broken(condition: u8, warehouse: u32, district: Option<u8>, what: String) -> Error {
    let district = district.map_or_else(String::new, |district| format!(", district {district}"));
    Error::Broken(format!(
        "TPC-C's consistency condition {condition} is broken in warehouse {warehouse}{district}: {what}"
    ))
}
