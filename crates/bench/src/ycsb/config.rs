//! Defines the options of YCSB's core workloads.

use fulgurite_base::option::{COUNT, COUNT_64, YES_NO};
use fulgurite_base::{Declared, Opt, opt};
use fulgurite_workload::generate::zipf::EXPONENT;

/// The core workload of YCSB, by its letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Letter {
    A,
    B,
    C,
    D,
    E,
    F,
}

/// The sizes of the table, which all six workloads share, and the popularity of its records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Records {
    /// The number of records after the load.
    pub records: u64,
    /// The number of fields of a record.
    pub fields: u32,
    /// The size of a field, in bytes.
    pub field_bytes: u32,
    /// The Zipf exponent of the records' popularity; 0 is uniform.
    pub theta: f64,
}

/// The number of records at a scale of 1.
pub(super) const RECORDS: u64 = 100_000;

impl Default for Records {
    fn default() -> Records {
        Records { records: RECORDS, fields: 10, field_bytes: 100, theta: 0.99 }
    }
}

/// The options of the workloads A, B and F, which update records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpdatesConfig {
    /// The workload: A, B or F.
    pub letter: Letter,
    /// The sizes of the table and the popularity of its records.
    pub table: Records,
    /// Whether an update writes all fields without reading the record first.
    pub write_all: bool,
}

impl UpdatesConfig {
    /// Returns the options of a workload with the defaults of YCSB.
    pub fn new(letter: Letter) -> UpdatesConfig {
        UpdatesConfig { letter, table: Records::default(), write_all: false }
    }
}

/// The options of the workloads C and D, which update nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadsConfig {
    /// The workload: C or D.
    pub letter: Letter,
    /// The sizes of the table and the popularity of its records.
    pub table: Records,
}

impl ReadsConfig {
    /// Returns the options of a workload with the defaults of YCSB.
    pub fn new(letter: Letter) -> ReadsConfig {
        ReadsConfig { letter, table: Records::default() }
    }
}

/// The options of the workload E, which scans records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScansConfig {
    /// The sizes of the table and the popularity of its records.
    pub table: Records,
    /// The most records that a scan returns. Each scan draws its own limit from 1 to this number.
    pub scan: u32,
}

impl Default for ScansConfig {
    fn default() -> ScansConfig {
        ScansConfig { table: Records::default(), scan: 100 }
    }
}

macro_rules! ycsb_options {
    ($config:ty $(, $option:expr)*) => {
        impl Declared for $config {
            const OPTIONS: &'static [Opt<$config>] = &[
                opt!("records", table.records, COUNT_64, 1 => 1 << 40, "records after the load"),
                opt!("fields", table.fields, COUNT, 1 => 1_000, "fields of a record"),
                opt!("field_bytes", table.field_bytes, COUNT, 8 => 65_536, "bytes of a field"),
                opt!("theta", table.theta, EXPONENT, 0.0 => 5.0, "exponent of the records' popularity; 0 is uniform"),
                $($option,)*
            ];
        }
    };
}

ycsb_options!(
    UpdatesConfig,
    opt!("write_all", write_all, YES_NO, "an update writes all fields, without reading the record first")
);
ycsb_options!(ReadsConfig);
ycsb_options!(ScansConfig, opt!("scan", scan, COUNT, 1 => 100_000, "records that a scan returns at most"));
