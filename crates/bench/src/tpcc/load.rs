//! Loads TPC-C's initial population (clause 4.3.3.1), table by table in the order of keys.

use super::config::TpccConfig;
use super::random::{Constants, address, data, last_name, nurand, permutation, tax};
use super::rows::*;
use super::tables::Tables;
use crate::Error;
use crate::codec::{Key, Row};
use crate::data::load_table;
use crate::draw::{between, between_u32, digits, letters, percent};
use fulgurite_base::Prng;
use fulgurite_engine::sharded::Store;

/// The time of the load, for columns that have the date of the population in the specification.
const LOADED: u64 = 1;

/// The initial year-to-date balances of a warehouse and of a district, in cents.
const WAREHOUSE_YTD: i64 = 300_000_00;
const DISTRICT_YTD: i64 = WAREHOUSE_YTD / DISTRICTS as i64;

/// The bytes of a key and of its row.
type Encoded = (Vec<u8>, Vec<u8>);

fn record<R: Row>(key: Key, row: &R) -> Encoded {
    (key.into_bytes(), row.encode())
}

impl TpccConfig {
    /// Returns the number of delivered orders of a district. The last three tenths of the orders are not
    /// delivered: 900 of 3,000.
    pub(super) fn delivered(&self) -> u32 {
        self.customers - self.customers * 3 / 10
    }

    /// Returns every warehouse and district, in the order of keys.
    fn districts(&self) -> impl Iterator<Item = (u32, u8)> + use<> {
        (1..=self.warehouses).flat_map(|warehouse| (1..=DISTRICTS).map(move |district| (warehouse, district)))
    }

    /// Returns every warehouse, district and number of a customer or an order, in the order of keys.
    fn customers(&self) -> impl Iterator<Item = (u32, u8, u32)> + use<> {
        let customers = self.customers;
        self.districts().flat_map(move |(warehouse, district)| {
            (1..=customers).map(move |number| (warehouse, district, number))
        })
    }
}

pub(super) async fn load(config: &TpccConfig, store: &Store, seed: u64) -> Result<(), Error> {
    load_places(config, store, seed).await?;
    load_goods(config, store, seed).await?;
    load_customers(config, store, seed).await?;
    load_orders(config, store, seed).await?;
    Tables::open(store).await?;
    Ok(())
}

/// Loads the warehouses and districts.
async fn load_places(config: &TpccConfig, store: &Store, seed: u64) -> Result<(), Error> {
    let mut prng = Prng::new(seed, "tpcc warehouses");
    let warehouses = (1..=config.warehouses).map(|number| {
        let row = Warehouse {
            name: letters(&mut prng, 6, 10),
            address: address(&mut prng),
            tax: tax(&mut prng),
            ytd: WAREHOUSE_YTD,
        };
        record(warehouse_key(number), &row)
    });
    load_table(store, Warehouse::TABLE, warehouses).await?;
    let mut prng = Prng::new(seed, "tpcc districts");
    let districts = config.districts().map(|(warehouse, district)| {
        let row = District {
            name: letters(&mut prng, 6, 10),
            address: address(&mut prng),
            tax: tax(&mut prng),
            ytd: DISTRICT_YTD,
            next_order: config.customers + 1,
        };
        record(district_key(warehouse, district), &row)
    });
    load_table(store, District::TABLE, districts).await?;
    Ok(())
}

/// Loads the items and the stocks.
async fn load_goods(config: &TpccConfig, store: &Store, seed: u64) -> Result<(), Error> {
    let mut prng = Prng::new(seed, "tpcc items");
    let items = (1..=config.items).map(|number| {
        let row = Item {
            image: between_u32(&mut prng, 1, 10_000),
            name: letters(&mut prng, 14, 24),
            price: between(&mut prng, 1_00, 100_00) as i64,
            data: data(&mut prng),
        };
        record(item_key(number), &row)
    });
    load_table(store, Item::TABLE, items).await?;
    let mut prng = Prng::new(seed, "tpcc stocks");
    let keys =
        (1..=config.warehouses).flat_map(|warehouse| (1..=config.items).map(move |item| (warehouse, item)));
    let stocks = keys.map(|(warehouse, item)| {
        let row = Stock {
            quantity: between(&mut prng, 10, 100) as i64,
            districts: std::array::from_fn(|_| letters(&mut prng, 24, 24)),
            ytd: 0,
            orders: 0,
            remote: 0,
            data: data(&mut prng),
        };
        record(stock_key(warehouse, item), &row)
    });
    load_table(store, Stock::TABLE, stocks).await?;
    Ok(())
}

/// Loads the customers, and a first payment of each.
async fn load_customers(config: &TpccConfig, store: &Store, seed: u64) -> Result<(), Error> {
    let constants = Constants::new(seed);
    let mut prng = Prng::new(seed, "tpcc customers");
    let customers = config.customers().map(|(warehouse, district, number)| {
        record(customer_key(warehouse, district, number), &customer(&mut prng, constants, number))
    });
    load_table(store, Customer::TABLE, customers).await?;
    let mut prng = Prng::new(seed, "tpcc history");
    let payments = config.customers().zip(0..).map(|((warehouse, district, customer), number)| {
        let row = History {
            customer,
            customer_district: district,
            customer_warehouse: warehouse,
            district,
            warehouse,
            date: LOADED,
            amount: 10_00,
            data: letters(&mut prng, 12, 24),
        };
        record(history_key(number), &row)
    });
    load_table(store, History::TABLE, payments).await?;
    Ok(())
}

fn customer(prng: &mut Prng, constants: Constants, number: u32) -> Customer {
    // The first thousand customers of a district have each last name once, and the others have random last
    // names.
    let name = match number {
        1..=1_000 => u64::from(number) - 1,
        _ => nurand(prng, 255, constants.last_load, 0, 999),
    };
    Customer {
        last: last_name(name),
        first: letters(prng, 8, 16),
        middle: "OE".to_owned(),
        address: address(prng),
        phone: digits(prng, 16),
        since: LOADED,
        credit: if percent(prng, 10) { "BC" } else { "GC" }.to_owned(),
        credit_limit: 50_000_00,
        discount: prng.below(5_001) as u32,
        balance: -10_00,
        ytd_payment: 10_00,
        payments: 1,
        deliveries: 0,
        data: letters(prng, 300, 500),
    }
}

/// Loads the orders, their lines, and the undelivered orders.
async fn load_orders(config: &TpccConfig, store: &Store, seed: u64) -> Result<(), Error> {
    let mut prng = Prng::new(seed, "tpcc orders");
    let mut customers = Vec::new();
    let orders = config.customers().zip(lines(seed)).map(|((warehouse, district, number), lines)| {
        // Each customer of a district has exactly one order, so the customers are a random permutation.
        if number == 1 {
            customers = permutation(&mut prng, config.customers);
        }
        let delivered = number <= config.delivered();
        let row = Order {
            customer: customers[number as usize - 1],
            entry: LOADED,
            carrier: if delivered { between(&mut prng, 1, 10) as u8 } else { 0 },
            lines,
            all_local: 1,
        };
        record(order_key(warehouse, district, number), &row)
    });
    load_table(store, Order::TABLE, orders).await?;
    let mut prng = Prng::new(seed, "tpcc order lines");
    let lines = config.customers().zip(lines(seed)).flat_map(|((warehouse, district, number), lines)| {
        let mut line = |line: u8| {
            let row = order_line(&mut prng, config, warehouse, number <= config.delivered());
            record(line_key(warehouse, district, number, line), &row)
        };
        (1..=lines).map(&mut line).collect::<Vec<Encoded>>()
    });
    load_table(store, OrderLine::TABLE, lines).await?;
    let waiting = config.customers().filter(|(_, _, number)| *number > config.delivered());
    let waiting = waiting
        .map(|(warehouse, district, number)| record(order_key(warehouse, district, number), &NewOrder {}));
    load_table(store, NewOrder::TABLE, waiting).await?;
    Ok(())
}

/// Returns the number of lines of each order. Orders and lines are loaded separately, so each call returns
/// the same numbers.
fn lines(seed: u64) -> impl Iterator<Item = u8> {
    let mut prng = Prng::new(seed, "tpcc lines");
    std::iter::repeat_with(move || between(&mut prng, 5, 15) as u8)
}

fn order_line(prng: &mut Prng, config: &TpccConfig, warehouse: u32, delivered: bool) -> OrderLine {
    OrderLine {
        item: between_u32(prng, 1, config.items),
        supplier: warehouse,
        delivered: if delivered { LOADED } else { 0 },
        quantity: 5,
        amount: if delivered { 0 } else { between(prng, 1, 9_999_99) as i64 },
        info: letters(prng, 24, 24),
    }
}
