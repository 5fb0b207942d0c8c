//! Defines the options of sysbench's OLTP programs.

use fulgurite_base::option::COUNT;
use fulgurite_base::{Choice, Declared, Form, Opt, opt};

/// The program of sysbench, which decides the statements of a transaction.
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

/// The way in which a transaction reads rows that it does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Rows are read from a snapshot taken when the transaction begins, as in MySQL by default.
    Snapshot,
    /// Rows are read with locks that are held until the transaction ends, so that transactions are
    /// serialisable.
    Locked,
}

impl Choice for Reads {
    const NAMES: &'static [(&'static str, Reads)] =
        &[("snapshot", Reads::Snapshot), ("locked", Reads::Locked)];
}

/// The number and the size of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tables {
    /// The number of tables.
    pub tables: u32,
    /// The number of rows in each table after the load.
    pub rows: u32,
}

/// The number of rows in each table at a scale of 1.
pub(super) const ROWS: u64 = 100_000;

impl Default for Tables {
    fn default() -> Tables {
        Tables { tables: 1, rows: ROWS as u32 }
    }
}

/// The options of the programs that read single rows or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsConfig {
    /// The program, as its statements.
    pub statements: Statements,
    /// The number and the size of the tables.
    pub tables: Tables,
}

impl RowsConfig {
    /// Returns the options of a program with one table of 100,000 rows.
    pub fn new(statements: Statements) -> RowsConfig {
        RowsConfig { statements, tables: Tables::default() }
    }
}

/// The options of the programs with point selects and ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectsConfig {
    /// The program, as its statements.
    pub statements: Statements,
    /// The number and the size of the tables.
    pub tables: Tables,
    /// The number of row ids that a range covers.
    pub range: u32,
    /// The way in which a transaction reads rows that it does not change.
    pub reads: Reads,
}

impl SelectsConfig {
    /// Returns the options of a program with sysbench's defaults and one table of 100,000 rows.
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
