//! TPC-C's nine tables (clause 1.3): their rows, without the columns of the keys, and the keys.
//!
//! Money is in cents, taxes and discounts in parts of ten thousand. A time is a number of nanoseconds on the
//! device's clock plus one; zero means "no time".

use crate::codec::{Key, Reader, row};

/// Districts of a warehouse.
pub const DISTRICTS: u8 = 10;

row! {
    /// A warehouse.
    Warehouse in "warehouse" {
        /// W_NAME.
        name: String,
        /// W_STREET_1, W_STREET_2, W_CITY, W_STATE, W_ZIP.
        address: [String; 5],
        /// W_TAX.
        tax: u32,
        /// W_YTD.
        ytd: i64,
    }
}

row! {
    /// A district.
    District in "district" {
        /// D_NAME.
        name: String,
        /// D_STREET_1, D_STREET_2, D_CITY, D_STATE, D_ZIP.
        address: [String; 5],
        /// D_TAX.
        tax: u32,
        /// D_YTD.
        ytd: i64,
        /// D_NEXT_O_ID.
        next_order: u32,
    }
}

row! {
    /// A customer.
    Customer in "customer" {
        /// C_LAST.
        last: String,
        /// C_FIRST.
        first: String,
        /// C_MIDDLE.
        middle: String,
        /// C_STREET_1, C_STREET_2, C_CITY, C_STATE, C_ZIP.
        address: [String; 5],
        /// C_PHONE.
        phone: String,
        /// C_SINCE.
        since: u64,
        /// C_CREDIT: `GC` or `BC`.
        credit: String,
        /// C_CREDIT_LIM.
        credit_limit: i64,
        /// C_DISCOUNT.
        discount: u32,
        /// C_BALANCE.
        balance: i64,
        /// C_YTD_PAYMENT.
        ytd_payment: i64,
        /// C_PAYMENT_CNT.
        payments: u16,
        /// C_DELIVERY_CNT.
        deliveries: u16,
        /// C_DATA.
        data: String,
    }
}

row! {
    /// A payment. The specification gives the table no key; here the rows are numbered.
    History in "history" {
        /// H_C_ID.
        customer: u32,
        /// H_C_D_ID.
        customer_district: u8,
        /// H_C_W_ID.
        customer_warehouse: u32,
        /// H_D_ID.
        district: u8,
        /// H_W_ID.
        warehouse: u32,
        /// H_DATE.
        date: u64,
        /// H_AMOUNT.
        amount: i64,
        /// H_DATA.
        data: String,
    }
}

row! {
    /// An undelivered order. The key has all its data.
    NewOrder in "new_order" {}
}

row! {
    /// An order.
    Order in "orders" {
        /// O_C_ID.
        customer: u32,
        /// O_ENTRY_D.
        entry: u64,
        /// O_CARRIER_ID; zero if the order was not delivered.
        carrier: u8,
        /// O_OL_CNT.
        lines: u8,
        /// O_ALL_LOCAL.
        all_local: u8,
    }
}

row! {
    /// A line of an order.
    OrderLine in "order_line" {
        /// OL_I_ID.
        item: u32,
        /// OL_SUPPLY_W_ID.
        supplier: u32,
        /// OL_DELIVERY_D; zero if the line was not delivered.
        delivered: u64,
        /// OL_QUANTITY.
        quantity: u8,
        /// OL_AMOUNT.
        amount: i64,
        /// OL_DIST_INFO.
        info: String,
    }
}

row! {
    /// An item.
    Item in "item" {
        /// I_IM_ID.
        image: u32,
        /// I_NAME.
        name: String,
        /// I_PRICE.
        price: i64,
        /// I_DATA.
        data: String,
    }
}

row! {
    /// A warehouse's stock of an item.
    Stock in "stock" {
        /// S_QUANTITY.
        quantity: i64,
        /// S_DIST_01 to S_DIST_10.
        districts: [String; 10],
        /// S_YTD.
        ytd: u32,
        /// S_ORDER_CNT.
        orders: u16,
        /// S_REMOTE_CNT.
        remote: u16,
        /// S_DATA.
        data: String,
    }
}

/// The key of a warehouse.
pub fn warehouse_key(warehouse: u32) -> Key {
    Key::new().u32(warehouse)
}

/// The key of a district. Districts count from one.
pub fn district_key(warehouse: u32, district: u8) -> Key {
    Key::new().u32(warehouse).u8(district)
}

/// The key of a customer. Customers of a district count from one.
pub fn customer_key(warehouse: u32, district: u8, customer: u32) -> Key {
    district_key(warehouse, district).u32(customer)
}

/// The key of an order, also in NEW-ORDER. Orders of a district count from one.
pub fn order_key(warehouse: u32, district: u8, order: u32) -> Key {
    district_key(warehouse, district).u32(order)
}

/// The key of a line of an order. Lines count from one.
pub fn line_key(warehouse: u32, district: u8, order: u32, line: u8) -> Key {
    order_key(warehouse, district, order).u8(line)
}

/// The key of an item. Items count from one.
pub fn item_key(item: u32) -> Key {
    Key::new().u32(item)
}

/// The key of a warehouse's stock of an item.
pub fn stock_key(warehouse: u32, item: u32) -> Key {
    Key::new().u32(warehouse).u32(item)
}

/// The key of a payment.
pub(crate) fn history_key(number: u64) -> Key {
    Key::new().u64(number)
}

/// A prefix of the index of customers by name: the customers with one last name, in the order of first names.
pub(crate) fn name_key(warehouse: u32, district: u8, last: &str) -> Key {
    district_key(warehouse, district).text(last, 16)
}

/// A prefix of the index of orders by customer: the orders of one customer, in the order of their numbers.
pub(crate) fn orders_of_key(warehouse: u32, district: u8, customer: u32) -> Key {
    customer_key(warehouse, district, customer)
}

/// The warehouse, the district and the number in the key of a customer or an order.
pub fn read_key(key: &[u8]) -> Option<(u32, u8, u32)> {
    let mut reader = Reader::new(key);
    let fields = (reader.key_u32()?, reader.key_u8()?, reader.key_u32()?);
    reader.is_empty().then_some(fields)
}
