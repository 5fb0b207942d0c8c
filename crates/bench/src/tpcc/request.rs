//! Defines the requests of TPC-C, which are its transactions with their inputs (clauses 2.4.1 to 2.8.1).

/// A transaction with its inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Request {
    NewOrder { warehouse: u32, district: u8, customer: u32, lines: Vec<Line> },
    Payment { number: u64, warehouse: u32, district: u8, customers: Customers, amount: i64 },
    OrderStatus { customers: Customers },
    Delivery { warehouse: u32, carrier: u8 },
    StockLevel { warehouse: u32, district: u8, threshold: i64 },
}

/// A line of a new order. If the item of a line does not exist, the order is rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Line {
    pub item: u32,
    pub supplier: u32,
    pub quantity: u8,
}

/// The selection of a customer in a district, by number or by last name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Customers {
    pub warehouse: u32,
    pub district: u8,
    pub who: Who,
}

/// The number or the last name by which a customer is selected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Who {
    Number(u32),
    Name(String),
}
