//! The options of sysbench's programs.

use super::{Sysbench, load};
use crate::config::{Recipe, data_text, scaled, stored};
use crate::data::Data;
use crate::{Error, Program};
use fulgurite_base::option::COUNT;
use fulgurite_base::{Choice, Declared, Form, Opt, SpecError, opt};
use fulgurite_device::Device;
use fulgurite_engine::Store;
use std::rc::Rc;

/// Which statements a transaction consists of.
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

/// How a transaction reads what it does not change.
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
const ROWS: u64 = 100_000;

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
    ($config:ty, $own:ident => ($range:expr, $reads:expr) $(, $option:expr)*) => {
        impl Declared for $config {
            const OPTIONS: &'static [Opt<$config>] = &[
                opt!("tables", tables.tables, COUNT, 1 => 1_000, "how many tables"),
                opt!("rows", tables.rows, COUNT, 1 => 1 << 31, "rows of each table after the load"),
                $($option,)*
            ];
        }

        impl Recipe for $config {
            fn data(&self) -> String {
                let Tables { tables, rows } = self.tables;
                data_text("sysbench", &[("tables", tables.into()), ("rows", rows.into())])
            }

            fn bytes(&self) -> u64 {
                let Tables { tables, rows } = self.tables;
                // A row has about 200 bytes, its index entry about 30.
                stored(u64::from(tables) * u64::from(rows), 230)
            }

            fn scale(&mut self, scale: u64) -> Result<(), SpecError> {
                self.tables.rows = scaled(scale, ROWS)?;
                Ok(())
            }

            async fn load<D: Device + 'static>(&self, store: &Store<D>, seed: u64) -> Result<(), Error> {
                load::load(self.tables, store, seed).await
            }

            async fn open<D: Device + 'static>(&self, store: &Store<D>, _: &Data) -> Result<Program, Error> {
                let $own = self;
                let sysbench = Sysbench::open(store, self.statements, self.tables, $range, $reads).await?;
                Ok(Program::Sysbench(Rc::new(sysbench)))
            }
        }
    };
}

sysbench_options!(RowsConfig, _own => (0, Reads::Snapshot));
sysbench_options!(
    SelectsConfig,
    own => (own.range, own.reads),
    opt!("range", range, COUNT, 1 => 1_000_000, "rows of a range"),
    opt!("reads", reads, Form::<Reads>::choice("snapshot|locked"), "how a transaction reads what it does not change")
);
