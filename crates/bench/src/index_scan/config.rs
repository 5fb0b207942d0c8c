//! Defines the options of the index scan benchmark.

use fulgurite_base::option::{COUNT_64, SHARE};
use fulgurite_base::{Choice, Declared, Form, Opt, Share, SpecError, opt, option};

/// The indexed column of the table of orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Column {
    OrderDate,
    CustKey,
}

impl Choice for Column {
    const NAMES: &'static [(&'static str, Column)] =
        &[("orderdate", Column::OrderDate), ("custkey", Column::CustKey)];
}

impl Column {
    /// Returns the name of the column.
    pub fn name(self) -> &'static str {
        option::name_of(self)
    }
}

/// The options of `index-scan`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexScanConfig {
    /// The number of rows of the table.
    pub orders: u64,
    /// The indexed column.
    pub column: Column,
    /// The share of the column's values that the range of a query covers.
    pub share: Share,
    /// The number of rows that a query reads concurrently.
    pub degree: Degree,
}

/// The number of rows that an index scan reads concurrently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Degree {
    /// The number is the drive's read concurrency k_r.
    Auto,
    /// The number is given.
    Rows(u32),
}

/// The number of orders at a scale factor of 1.
pub(super) const ORDERS: u64 = 1_500_000;

impl Default for IndexScanConfig {
    fn default() -> IndexScanConfig {
        IndexScanConfig {
            orders: ORDERS,
            column: Column::OrderDate,
            share: Share::from_ppm(1_000),
            degree: Degree::Rows(32),
        }
    }
}

impl IndexScanConfig {
    /// Returns the number of customers, which is a tenth of the orders, as in TPC-H.
    pub(super) fn customers(&self) -> u32 {
        u32::try_from(self.orders / 10).unwrap_or(u32::MAX - 1).max(1)
    }
}

/// The most rows that an index scan may read concurrently.
const MOST_ROWS: u32 = 256;

/// The form of a number of concurrent reads, or `auto`.
const DEGREE: Form<Degree> = Form { written: "N|auto", parse: parse_degree, show: show_degree };

fn parse_degree(text: &str) -> Result<Degree, SpecError> {
    let rows = || text.parse().ok().filter(|rows| (1..=MOST_ROWS).contains(rows));
    match text {
        "auto" => Ok(Degree::Auto),
        _ => rows().map(Degree::Rows).ok_or_else(|| {
            SpecError::new(format!(
                "`{text}` is not a number of rows to read at once; accepted: 1 to {MOST_ROWS}, or auto (the \
                 drive's k_r)"
            ))
        }),
    }
}

fn show_degree(degree: &Degree) -> String {
    match degree {
        Degree::Auto => "auto".to_owned(),
        Degree::Rows(rows) => rows.to_string(),
    }
}

impl IndexScanConfig {
    /// Sets the option `degree` to its text.
    pub fn set_degree(&mut self, degree: &str) -> Result<(), SpecError> {
        self.degree = parse_degree(degree)?;
        Ok(())
    }

    /// Replaces a degree of `auto` by the drive's read concurrency k_r.
    pub fn resolve(&mut self, k_r: impl FnOnce() -> Result<u32, SpecError>) -> Result<(), SpecError> {
        if self.degree == Degree::Auto {
            self.degree = Degree::Rows(k_r()?.clamp(1, MOST_ROWS));
        }
        Ok(())
    }
}

impl Declared for IndexScanConfig {
    const OPTIONS: &'static [Opt<IndexScanConfig>] = &[
        opt!("orders", orders, COUNT_64, 1 => 1 << 34, "rows of the table"),
        opt!("column", column, Form::<Column>::choice("orderdate|custkey"), "the column of the index"),
        opt!(
            "share", share, SHARE, Share::from_ppm(1) => Share::ONE,
            "share of the column's values in a query's range"
        ),
        opt!(
            "degree",
            degree,
            DEGREE,
            "rows that are read concurrently: 1 to 256, or auto (the drive's k_r)"
        ),
    ];
}
