//! The options of sysbench's programs.

use fulgurite_base::option::COUNT;
use fulgurite_base::{Choice, Declared, Form, Opt, opt};

/// The statements of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is a name in the registry
pub enum Statements {
    ReadWrite,
    ReadOnly,
    WriteOnly,
    PointSelect,
    UpdateIndex,
    UpdateNonIndex,
    Insert,
    Delete,
}

/// How a transaction reads rows that it does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// From a snapshot taken when the transaction begins, as MySQL does by default.
    Snapshot,
    /// With locks until the transaction ends, so that transactions are serialisable.
    Locked,
}

impl Choice for Reads {
    const NAMES: &'static [(&'static str, Reads)] =
        &[("snapshot", Reads::Snapshot), ("locked", Reads::Locked)];
}

/// The tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tables {
    /// How many.
    pub tables: u32,
    /// Rows of each after the load.
    pub rows: u32,
}

/// Rows of a scale of 1.
pub(super) const ROWS: u64 = 100_000;

impl Default for Tables {
    fn default() -> Tables {
        Tables { tables: 1, rows: ROWS as u32 }
    }
}

/// The options of the programs that read single rows or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsConfig {
    /// Which program.
    pub statements: Statements,
    /// The tables.
    pub tables: Tables,
}

impl RowsConfig {
    /// One table of 100,000 rows.
    pub fn new(statements: Statements) -> RowsConfig {
        RowsConfig { statements, tables: Tables::default() }
    }
}

/// The options of the programs with point selects and ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectsConfig {
    /// Which program.
    pub statements: Statements,
    /// The tables.
    pub tables: Tables,
    /// Rows of a range.
    pub range: u32,
    /// How a transaction reads.
    pub reads: Reads,
}

impl SelectsConfig {
    /// The defaults of sysbench, with one table of 100,000 rows.
    pub fn new(statements: Statements) -> SelectsConfig {
        SelectsConfig { statements, tables: Tables::default(), range: 100, reads: Reads::Snapshot }
    }
}

macro_rules! sysbench_options {
    ($config:ty $(, $option:expr)*) => {
        impl Declared for $config {
            const OPTIONS: &'static [Opt<$config>] = &[
                opt!("tables", tables.tables, COUNT, 1 => 1_000, "how many tables"),
                opt!("rows", tables.rows, COUNT, 1 => 1 << 31, "rows of each table after the load"),
                $($option,)*
            ];
        }
    };
}

sysbench_options!(RowsConfig);
sysbench_options!(
    SelectsConfig,
    opt!("range", range, COUNT, 1 => 1_000_000, "rows of a range"),
    opt!(
        "reads",
        reads,
        Form::<Reads>::choice("snapshot|locked"),
        "how a transaction reads rows that it does not change"
    )
);
