//! Defines the rows and keys of TPC-C's nine tables (clause 1.3). The rows are without the columns of the
//! keys.
//!
//! The fields are documented by the column names of the specification. Money is in cents, and taxes and
//! discounts are in ten thousandths. A time is a number of nanoseconds on the device's clock plus one; zero
//! means "no time".

use crate::codec::{Key, Reader, row};

/// The number of districts of a warehouse.
pub const DISTRICTS: u8 = 10;

row! {
    /// A row of WAREHOUSE.
    Warehouse in "warehouse" {
        /// W_NAME, the name of the warehouse.
        name: String,
        /// W_STREET_1, W_STREET_2, W_CITY, W_STATE and W_ZIP, the address of the warehouse.
        address: [String; 5],
        /// W_TAX, the sales tax of the warehouse.
        tax: u32,
        /// W_YTD, the year-to-date balance of the warehouse.
        ytd: i64,
    }
}

row! {
    /// A row of DISTRICT.
    District in "district" {
        /// D_NAME, the name of the district.
        name: String,
        /// D_STREET_1, D_STREET_2, D_CITY, D_STATE and D_ZIP, the address of the district.
        address: [String; 5],
        /// D_TAX, the sales tax of the district.
        tax: u32,
        /// D_YTD, the year-to-date balance of the district.
        ytd: i64,
        /// D_NEXT_O_ID, the number of the next order in the district.
        next_order: u32,
    }
}

row! {
    /// A row of CUSTOMER.
    Customer in "customer" {
        /// C_LAST, the last name of the customer.
        last: String,
        /// C_FIRST, the first name of the customer.
        first: String,
        /// C_MIDDLE, the middle name of the customer.
        middle: String,
        /// C_STREET_1, C_STREET_2, C_CITY, C_STATE and C_ZIP, the address of the customer.
        address: [String; 5],
        /// C_PHONE, the phone number of the customer.
        phone: String,
        /// C_SINCE, the time of the customer's registration.
        since: u64,
        /// C_CREDIT, the credit of the customer: `GC` for good or `BC` for bad.
        credit: String,
        /// C_CREDIT_LIM, the credit limit of the customer.
        credit_limit: i64,
        /// C_DISCOUNT, the discount of the customer.
        discount: u32,
        /// C_BALANCE, the balance of the customer.
        balance: i64,
        /// C_YTD_PAYMENT, the sum of the customer's payments.
        ytd_payment: i64,
        /// C_PAYMENT_CNT, the number of the customer's payments.
        payments: u16,
        /// C_DELIVERY_CNT, the number of deliveries to the customer.
        deliveries: u16,
        /// C_DATA, miscellaneous information about the customer.
        data: String,
    }
}

row! {
    /// A row of HISTORY, which records a payment. The specification gives the table no key; here the payments
    /// are numbered.
    History in "history" {
        /// H_C_ID, the number of the customer.
        customer: u32,
        /// H_C_D_ID, the district of the customer.
        customer_district: u8,
        /// H_C_W_ID, the warehouse of the customer.
        customer_warehouse: u32,
        /// H_D_ID, the district to which the payment was booked.
        district: u8,
        /// H_W_ID, the warehouse to which the payment was booked.
        warehouse: u32,
        /// H_DATE, the time of the payment.
        date: u64,
        /// H_AMOUNT, the amount of the payment.
        amount: i64,
        /// H_DATA, the names of the warehouse and the district.
        data: String,
    }
}

row! {
    /// A row of NEW-ORDER, which marks an order as undelivered. The key has all its data.
    NewOrder in "new_order" {}
}

row! {
    /// A row of ORDER.
    Order in "orders" {
        /// O_C_ID, the number of the customer.
        customer: u32,
        /// O_ENTRY_D, the time of the order.
        entry: u64,
        /// O_CARRIER_ID, the number of the carrier; zero if the order was not delivered.
        carrier: u8,
        /// O_OL_CNT, the number of lines of the order.
        lines: u8,
        /// O_ALL_LOCAL, whether the order's warehouse supplies all lines: 1 or 0.
        all_local: u8,
    }
}

row! {
    /// A row of ORDER-LINE.
    OrderLine in "order_line" {
        /// OL_I_ID, the number of the item.
        item: u32,
        /// OL_SUPPLY_W_ID, the warehouse that supplies the item.
        supplier: u32,
        /// OL_DELIVERY_D, the time of the delivery; zero if the line was not delivered.
        delivered: u64,
        /// OL_QUANTITY, the number of ordered pieces of the item.
        quantity: u8,
        /// OL_AMOUNT, the amount of the line.
        amount: i64,
        /// OL_DIST_INFO, the stock's information about the district.
        info: String,
    }
}

row! {
    /// A row of ITEM.
    Item in "item" {
        /// I_IM_ID, the number of the item's image.
        image: u32,
        /// I_NAME, the name of the item.
        name: String,
        /// I_PRICE, the price of the item.
        price: i64,
        /// I_DATA, brand information about the item.
        data: String,
    }
}

row! {
    /// A row of STOCK, which is the stock of an item in a warehouse.
    Stock in "stock" {
        /// S_QUANTITY, the number of pieces in stock.
        quantity: i64,
        /// S_DIST_01 to S_DIST_10, information about each district.
        districts: [String; 10],
        /// S_YTD, the number of pieces sold from this stock.
        ytd: u32,
        /// S_ORDER_CNT, the number of order lines supplied from this stock.
        orders: u16,
        /// S_REMOTE_CNT, the number of these lines that belong to orders of other warehouses.
        remote: u16,
        /// S_DATA, miscellaneous information about the stock.
        data: String,
    }
}

/// Returns the key of a warehouse. Warehouses count from one.
pub fn warehouse_key(warehouse: u32) -> Key {
    Key::new().u32(warehouse)
}

/// Returns the key of a district. The districts of a warehouse count from one.
pub fn district_key(warehouse: u32, district: u8) -> Key {
    Key::new().u32(warehouse).u8(district)
}

/// Returns the key of a customer. The customers of a district count from one.
pub fn customer_key(warehouse: u32, district: u8, customer: u32) -> Key {
    district_key(warehouse, district).u32(customer)
}

/// Returns the key of an order, in ORDER and in NEW-ORDER. The orders of a district count from one.
pub fn order_key(warehouse: u32, district: u8, order: u32) -> Key {
    district_key(warehouse, district).u32(order)
}

/// Returns the key of an order line. The lines of an order count from one.
pub fn line_key(warehouse: u32, district: u8, order: u32, line: u8) -> Key {
    order_key(warehouse, district, order).u8(line)
}

/// Returns the key of an item. Items count from one.
pub fn item_key(item: u32) -> Key {
    Key::new().u32(item)
}

/// Returns the key of a warehouse's stock of an item.
pub fn stock_key(warehouse: u32, item: u32) -> Key {
    Key::new().u32(warehouse).u32(item)
}

/// Returns the key of a payment in HISTORY.
pub(crate) fn history_key(number: u64) -> Key {
    Key::new().u64(number)
}

/// Returns the prefix of the entries for one last name in the index of customers by name. The entries with
/// this prefix are in the order of first names.
pub(crate) fn name_key(warehouse: u32, district: u8, last: &str) -> Key {
    district_key(warehouse, district).text(last, 16)
}

/// Returns the prefix of the entries for one customer in the index of orders by customer. The entries with
/// this prefix are in the order of order numbers.
pub(crate) fn orders_of_key(warehouse: u32, district: u8, customer: u32) -> Key {
    customer_key(warehouse, district, customer)
}

/// Returns the warehouse, the district and the number in the key of a customer or an order; `None` if the key
/// has another form.
pub fn read_key(key: &[u8]) -> Option<(u32, u8, u32)> {
    let mut reader = Reader::new(key);
    let fields = (reader.key_u32()?, reader.key_u8()?, reader.key_u32()?);
    reader.is_empty().then_some(fields)
}
