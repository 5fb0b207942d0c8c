//! Defines the options of the TPC-C benchmark.

use fulgurite_base::option::COUNT;
use fulgurite_base::{Declared, Opt, opt};

/// The options of `tpcc`. The defaults of all except `warehouses` are the sizes of the specification; other
/// values are for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TpccConfig {
    /// The number of warehouses. Each has about 100 MB of data.
    pub warehouses: u32,
    /// The number of customers of a district. After the load, a district has as many orders.
    pub customers: u32,
    /// The number of items. Every warehouse has a stock of each item.
    pub items: u32,
}

impl Default for TpccConfig {
    fn default() -> TpccConfig {
        TpccConfig { warehouses: 1, customers: 3_000, items: 100_000 }
    }
}

impl Declared for TpccConfig {
    const OPTIONS: &'static [Opt<TpccConfig>] = &[
        opt!("warehouses", warehouses, COUNT, 1 => 1_000_000, "warehouses, about 100 MB each"),
        opt!("customers", customers, COUNT, 10 => 3_000, "customers of a district; the specification has 3000"),
        opt!("items", items, COUNT, 100 => 100_000, "items; the specification has 100000"),
    ];
}
