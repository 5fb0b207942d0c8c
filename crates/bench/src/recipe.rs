//! Defines the interface of a benchmark's options, which describe the data of the benchmark, load them and
//! open them.

use crate::benchmark::Benchmark;
use crate::data::Data;
use crate::error::Error;
use fulgurite_base::{Declared, SpecError};
use fulgurite_engine::sharded::Store;

/// The options of a benchmark.
pub(crate) trait Recipe: Declared + Clone {
    /// The benchmark over a store that holds its data.
    type Benchmark: Benchmark;

    /// Returns a text that identifies the data, with every option that they depend on. Benchmarks with the
    /// same text can share data.
    fn data(&self) -> String;

    /// Returns the approximate size of the data in a store, in bytes, with their indexes.
    fn bytes(&self) -> u64;

    /// Sets the size of the data to `scale` times the default size. Fails if the scale is out of range.
    fn scale(&mut self, scale: u64) -> Result<(), SpecError>;

    /// Fails if options contradict each other although each is in its range.
    fn check(&self) -> Result<(), SpecError> {
        Ok(())
    }

    /// Fills an empty store with the data.
    async fn load(&self, store: &Store, seed: u64) -> Result<(), Error>;

    /// Opens the tables and indexes of a store that holds the data.
    async fn open(&self, store: &Store, data: &Data) -> Result<Self::Benchmark, Error>;
}

/// Returns the text that identifies data, made of a name and numbers with keys.
pub(crate) fn data_text(name: &str, numbers: &[(&str, u64)]) -> String {
    let numbers: Vec<String> = numbers.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("{name}:{}", numbers.join(","))
}

/// Returns the approximate size in bytes of `count` records of `bytes` bytes each in pages of 4 KiB. A load
/// fills about nine tenths of a page with whole records.
pub(crate) fn stored(count: u64, bytes: u64) -> u64 {
    const PAGE: u64 = 4096;
    const FILLED: u64 = 3600;
    let each = match FILLED / bytes {
        // A record that does not fit in a page is stored in pages of its own.
        0 => bytes.next_multiple_of(PAGE),
        in_a_page => PAGE / in_a_page,
    };
    count.saturating_mul(each)
}

/// Returns `scale` times `unit` in the type of an option. Fails if `scale` is zero or the product does not
/// fit.
pub(crate) fn scaled<T: TryFrom<u64>>(scale: u64, unit: u64) -> Result<T, SpecError> {
    let product = scale.checked_mul(unit).filter(|_| scale > 0).and_then(|product| T::try_from(product).ok());
    product
        .ok_or_else(|| SpecError::new("out of range; accepted: a number from 1 on that the options can hold"))
}
