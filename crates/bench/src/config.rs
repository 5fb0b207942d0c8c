//! Defines the registry of benchmarks by name.

use crate::data::Data;
use crate::error::Error;
use crate::index_scan::IndexScanConfig;
use crate::linkbench::LinkBenchConfig;
use crate::program::Program;
use crate::recipe::Recipe;
use crate::sysbench::{RowsConfig, SelectsConfig, Statements};
use crate::tpcc::TpccConfig;
use crate::ycsb::{Letter, ReadsConfig, ScansConfig, UpdatesConfig};
use fulgurite_base::{Declared, SpecError, config_enum};
use fulgurite_engine::sharded::Store;

macro_rules! benchmarks {
    ($($name:literal $variant:ident($config:ty $(= $usual:expr)?) $about:literal)*) => {
        config_enum! {
            /// The benchmarks by name, each with its options.
            pub enum BenchmarkConfig: "benchmark";
            $($name $variant($config $(= $usual)?) $about)*
        }

        /// Evaluates `$call` with the options of the benchmark.
        macro_rules! dispatch {
            ($self:expr, $recipe:ident => $call:expr) => {
                match $self {
                    $(BenchmarkConfig::$variant($recipe) => $call,)*
                }
            };
        }
    };
}

benchmarks! {
    "ycsb-a" YcsbA(UpdatesConfig = UpdatesConfig::new(Letter::A)) "half reads, half updates of a field"
    "ycsb-b" YcsbB(UpdatesConfig = UpdatesConfig::new(Letter::B)) "reads, a twentieth updates of a field"
    "ycsb-c" YcsbC(ReadsConfig = ReadsConfig::new(Letter::C)) "only reads"
    "ycsb-d" YcsbD(ReadsConfig = ReadsConfig::new(Letter::D)) "reads of the latest records, a twentieth inserts"
    "ycsb-e" YcsbE(ScansConfig) "short scans, a twentieth inserts"
    "ycsb-f" YcsbF(UpdatesConfig = UpdatesConfig::new(Letter::F))
        "half reads, half reads with an update of the record"
    "tpcc" Tpcc(TpccConfig) "TPC-C's five transactions, without think time"
    "linkbench" LinkBench(LinkBenchConfig) "ten operations on a social graph of nodes, links and counts"
    "sysbench-read-write" SysbenchReadWrite(SelectsConfig = SelectsConfig::new(Statements::ReadWrite))
        "10 rows by key, 4 ranges, 2 updates, a delete and an insert"
    "sysbench-read-only" SysbenchReadOnly(SelectsConfig = SelectsConfig::new(Statements::ReadOnly))
        "sysbench-read-write without the writes"
    "sysbench-write-only" SysbenchWriteOnly(RowsConfig = RowsConfig::new(Statements::WriteOnly))
        "sysbench-read-write without the reads"
    "sysbench-point-select" SysbenchPointSelect(RowsConfig = RowsConfig::new(Statements::PointSelect)) "a row by key"
    "sysbench-update-index" SysbenchUpdateIndex(RowsConfig = RowsConfig::new(Statements::UpdateIndex))
        "an update that moves an index entry"
    "sysbench-update-non-index" SysbenchUpdateNonIndex(RowsConfig = RowsConfig::new(Statements::UpdateNonIndex))
        "an update that moves none"
    "sysbench-insert" SysbenchInsert(RowsConfig = RowsConfig::new(Statements::Insert)) "a new row at the end of a table"
    "sysbench-delete" SysbenchDelete(RowsConfig = RowsConfig::new(Statements::Delete))
        "a row deleted by key, if it is still there"
    "index-scan" IndexScan(IndexScanConfig) "whole rows of TPC-H's orders for a range of a secondary index"
}

impl BenchmarkConfig {
    /// Returns the same benchmark with `scale` times the default size of its data. A scale of 1 is one
    /// warehouse in TPC-C, 100,000 records in YCSB, 100,000 nodes in LinkBench, 100,000 rows of each table in
    /// sysbench, and a scale factor of 1 of TPC-H (1,500,000 orders) in the index scan.
    ///
    /// Fails if the scale is out of range.
    pub fn with_scale(mut self, scale: u64) -> Result<BenchmarkConfig, SpecError> {
        let name = self.name().to_owned();
        let refused = |error: SpecError| SpecError::new(format!("scale={scale} of {name}: {error}"));
        dispatch!(&mut self, recipe => recipe.scale(scale).and_then(|()| recipe.check_bounds()))
            .map_err(refused)?;
        Ok(self)
    }

    /// Returns a text that identifies the benchmark's data, with every option that the data depend on.
    /// Benchmarks with the same text can share a store, for example `ycsb-a` and `ycsb-c`.
    pub fn data(&self) -> String {
        dispatch!(self, recipe => recipe.data())
    }

    /// Returns the approximate size of the data in a store, in bytes, with their indexes. It helps to choose
    /// the sizes of drives and memory.
    pub fn data_bytes(&self) -> u64 {
        dispatch!(self, recipe => recipe.bytes())
    }

    /// Fills an empty store with the benchmark's data and writes a checkpoint. The data are a pure function
    /// of the options and of `seed`.
    ///
    /// Fails if options contradict each other, if the store already holds data, and if the store fails.
    pub async fn load(&self, store: &Store, seed: u64) -> Result<(), Error> {
        Data::check_none(store).await?;
        dispatch!(self, recipe => {
            recipe.check_bounds()?;
            recipe.check()?;
            recipe.load(store, seed).await?;
        });
        Data { text: self.data(), seed }.note(store).await?;
        Ok(store.checkpoint().await?)
    }

    /// Opens the benchmark over a store that holds its data.
    ///
    /// Fails if the store holds other data, or none.
    pub async fn open(&self, store: &Store) -> Result<Program, Error> {
        dispatch!(self, recipe => {
            recipe.check_bounds()?;
            recipe.check()?;
        });
        let data = Data::check(store, self.data()).await?;
        dispatch!(self, recipe => Ok(recipe.open(store, &data).await?.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_can_be_parsed_from_its_text_with_all_options() {
        BenchmarkConfig::registry().check_texts().unwrap();
    }

    #[test]
    fn a_scale_of_one_is_the_default_and_others_change_the_data() {
        for name in BenchmarkConfig::registry().names() {
            let config = || name.parse::<BenchmarkConfig>().unwrap();
            assert_eq!(config().with_scale(1).unwrap().to_string(), name);
            let other = config().with_scale(3).unwrap();
            assert_ne!(other.data(), config().data());
            assert!(other.to_string().parse::<BenchmarkConfig>().is_ok(), "{other}");
            for refused in [0, u64::MAX] {
                let sentence = config().with_scale(refused).unwrap_err().to_string();
                assert!(sentence.starts_with(&format!("scale={refused} of {name}: ")), "{sentence}");
            }
        }
    }

    #[test]
    fn the_index_scan_names_the_accepted_degrees() {
        for refused in ["0", "257", "-1", "many"] {
            let sentence = format!("index-scan:degree={refused}").parse::<BenchmarkConfig>().unwrap_err();
            assert_eq!(
                sentence.to_string(),
                format!(
                    "degree of index-scan: `{refused}` is not a number of rows to read at once; accepted: 1 to \
                     256, or auto (the drive's k_r)"
                )
            );
        }
        for accepted in ["1", "256", "auto"] {
            let config: BenchmarkConfig = format!("index-scan:degree={accepted}").parse().unwrap();
            assert_eq!(config.to_string(), format!("index-scan:degree={accepted}"));
        }
    }
}
