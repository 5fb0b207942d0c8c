//! The options of YCSB's workloads.

use fulgurite_base::option::{COUNT, COUNT_64, YES_NO};
use fulgurite_base::{Declared, Opt, opt};
use fulgurite_workload::generate::zipf::EXPONENT;

/// Which of the six workloads.
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

/// The table, which all six workloads share, and the popularity of its records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Records {
    /// Records after the load.
    pub records: u64,
    /// Fields of a record.
    pub fields: u32,
    /// Bytes of a field.
    pub field_bytes: u32,
    /// The exponent of the records' popularity.
    pub theta: f64,
}

/// Records of a scale of 1.
pub(super) const RECORDS: u64 = 100_000;

impl Default for Records {
    fn default() -> Records {
        Records { records: RECORDS, fields: 10, field_bytes: 100, theta: 0.99 }
    }
}

/// The options of A, B and F, which update records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpdatesConfig {
    /// Which of the three.
    pub letter: Letter,
    /// The table.
    pub table: Records,
    /// Whether an update writes all fields without reading the record first.
    pub write_all: bool,
}

impl UpdatesConfig {
    /// The defaults of YCSB.
    pub fn new(letter: Letter) -> UpdatesConfig {
        UpdatesConfig { letter, table: Records::default(), write_all: false }
    }
}

/// The options of C and D, which update nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadsConfig {
    /// Which of the two.
    pub letter: Letter,
    /// The table.
    pub table: Records,
}

impl ReadsConfig {
    /// The defaults of YCSB.
    pub fn new(letter: Letter) -> ReadsConfig {
        ReadsConfig { letter, table: Records::default() }
    }
}

/// The options of E.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScansConfig {
    /// The table.
    pub table: Records,
    /// Records that a scan returns at most.
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
