//! Reads the values of settings from text.

use crate::build::Memory;
use fulgurite_base::{Nanos, SpecError, option, units};
use fulgurite_bench::Extent;

pub(super) fn read_memory(text: &str) -> Result<Memory, SpecError> {
    match text.ends_with('%') {
        true => units::parse_share(text).map(Memory::OfData),
        false => units::parse_size(text).map(Memory::Bytes),
    }
}

/// Reads a share of the memory in whole per cent: `0%` to `90%`.
pub(super) fn read_records(text: &str) -> Result<u8, SpecError> {
    let percent = text.strip_suffix('%').and_then(|number| number.parse().ok());
    percent.filter(|percent| *percent <= 90).ok_or_else(|| {
        SpecError::new(format!("`{text}` is not a share of the memory for records; accepted: 0% to 90%"))
    })
}

/// Reads a number of transactions, or a length of time: `20K`, `10s`.
pub(super) fn read_extent(text: &str) -> Result<Extent, SpecError> {
    match text.ends_with('s') {
        true => read_time_interval(text).map(Extent::Time),
        false => count(text, 0, 1 << 40).map(Extent::Ops),
    }
}

/// Reads a number of shards; `None` for one for each core.
pub(super) fn read_shards(text: &str) -> Result<Option<u32>, SpecError> {
    match text {
        "auto" => Ok(None),
        text => count(text, 1, 4_096).map(|shards| Some(shards as u32)).map_err(|_| {
            SpecError::new(format!("`{text}` is not a number of shards; accepted: 1 to 4096, or auto"))
        }),
    }
}

/// Reads a count within `least..=most`.
pub(super) fn count(text: &str, least: u64, most: u64) -> Result<u64, SpecError> {
    option::COUNT_64.parse_within(text, &least, &most)
}

pub(super) fn read_page_bytes(text: &str) -> Result<u32, SpecError> {
    let bytes = units::parse_size(text)?;
    let fits =
        u32::try_from(bytes).ok().filter(|bytes| bytes.is_power_of_two() && (512..=1 << 20).contains(bytes));
    fits.ok_or_else(|| {
        SpecError::new(format!("{text} is not a page size; accepted: a power of two from 512B to 1MiB"))
    })
}

pub(super) fn read_speed(text: &str) -> Result<f64, SpecError> {
    let number = text.strip_suffix('x').and_then(|number| number.parse::<f64>().ok());
    let in_range = number.filter(|speed| (1e-6..=1e6).contains(speed));
    in_range.ok_or_else(|| SpecError::new(format!("{text} is not a speed; write 2x or 0.5x")))
}

/// The least share of the pages that a sample may have.
const SAMPLE_AT_LEAST: u32 = 1 << 20;

/// Reads the share of the pages in a sample: `1/16`, or `1`. Returns its divisor.
pub fn read_sample(text: &str) -> Result<u32, SpecError> {
    let divisor = if text == "1" { Some(1) } else { text.strip_prefix("1/").and_then(|n| n.parse().ok()) };
    divisor.filter(|divisor| (1..=SAMPLE_AT_LEAST).contains(divisor)).ok_or_else(|| {
        SpecError::new(format!(
            "`{text}` is not a share of the pages; accepted: 1, or 1/2 to 1/{SAMPLE_AT_LEAST}"
        ))
    })
}

/// Reads an interval of time: `100ms`, `1s`, `250us`.
pub(super) fn read_time_interval(text: &str) -> Result<Nanos, SpecError> {
    let scales = [("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    let scaled = scales.iter().find_map(|(unit, scale)| {
        text.strip_suffix(unit)?.parse::<u64>().ok()?.checked_mul(*scale).filter(|length| *length > 0)
    });
    scaled
        .map(Nanos)
        .ok_or_else(|| SpecError::new(format!("{text} is not a length of time; write 250us, 100ms or 1s")))
}
