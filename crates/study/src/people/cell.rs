//! Formats cells of tables for people, with three significant digits and a suitable unit.

use fulgurite_base::units;
pub(super) use fulgurite_base::units::significant;
use fulgurite_stack::{Column, Row, Unit, Value};

/// Returns the heading of a column: its name without the unit, because each value shows its unit. If another
/// column has that short name, the heading is the full name.
pub fn head(column: Column) -> &'static str {
    let name = column.name();
    let ends: &[&str] = match column.unit() {
        Unit::Nanoseconds => &["_ns"],
        Unit::Bytes => &["_bytes"],
        Unit::BytesPerSecond => &["_bytes_s"],
        Unit::Number => &["_ops_s", "_requests_s"],
        Unit::Name => &[],
    };
    let short = ends.iter().find_map(|end| name.strip_suffix(end));
    // These names would mislead without the unit: `record` suggests the size of one record, but means the
    // size of all.
    let is_free = |short: &&str| {
        !["sim", "record"].contains(short) && Column::all().all(|column| column.name() != *short)
    };
    short.filter(is_free).unwrap_or(name)
}

/// Returns the column with this name or this heading.
pub fn column_called(name: &str) -> Result<Column, fulgurite_base::SpecError> {
    Column::all().find(|column| head(*column) == name).map_or_else(|| Column::from_name(name), Ok)
}

/// Formats the value of `column` in this row; `None` if the row has no value. The row tells whether request
/// sizes are in bytes or in pages.
pub(super) fn humane_in(row: &Row, column: Column) -> Option<String> {
    let value = row.get(column)?;
    let is_size = column.name().starts_with("read_size_") || column.name().starts_with("write_size_");
    match value {
        Value::Integer(bytes) if is_size && counts_bytes(row) => Some(Unit::Bytes.humane(*bytes as f64)),
        Value::Real(bytes) if is_size && counts_bytes(row) => Some(Unit::Bytes.humane(*bytes)),
        _ => Some(humane(column, value)),
    }
}

fn counts_bytes(row: &Row) -> bool {
    row.text(Column::SizeUnit) == "bytes"
}

/// Formats a value of `column`. Counts in columns that identify a run keep all their digits.
pub(crate) fn humane(column: Column, value: &Value) -> String {
    let number = match value {
        Value::Text(text) => return text.clone(),
        Value::Integer(seed) if column == Column::Seed => return seed.to_string(),
        Value::Integer(_) if column.is_axis() && column.unit() == Unit::Number => return value.readable(),
        Value::Integer(integer) => *integer as f64,
        Value::Real(real) => *real,
    };
    if !number.is_finite() {
        return "–".to_owned();
    }
    match column.unit() {
        Unit::Name | Unit::Number => of_number(column.name(), number),
        unit => unit.humane(number),
    }
}

/// Formats a number whose column declares no unit. The end of the column's name implies the unit.
fn of_number(name: &str, number: f64) -> String {
    let has_end = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    if has_end(&["_ratio", "_ratio_error", "_share"]) || name.starts_with("share_") {
        return format!("{} %", significant(100.0 * number));
    }
    if has_end(&["_ops_s", "_requests_s", "records_s"]) || name.contains("_iops_") {
        return units::humane(number, &[(1e9, " G/s"), (1e6, " M/s"), (1e3, " K/s"), (1.0, " /s")]);
    }
    if has_end(&["_s"]) {
        return format!("{} s", significant(number));
    }
    if has_end(&["_ns2"]) {
        return units::humane(number, &[(1e18, " s²"), (1e12, " ms²"), (1e6, " µs²"), (1.0, " ns²")]);
    }
    if has_end(&["_bytes_written"]) {
        return Unit::Bytes.humane(number);
    }
    // Counts below ten thousand keep all their digits.
    if number.fract() == 0.0 && number.abs() < 1e4 {
        return format!("{number:.0}");
    }
    let scales = [(1e15, " P"), (1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " K"), (1.0, "")];
    units::humane(number, &scales)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: request sizes are formatted as bytes if the row counts bytes, and as plain numbers if it
    /// counts pages.
    #[test]
    fn sizes_of_requests_have_the_unit_of_their_row() {
        for (unit, mean, most) in [("bytes", "55.6 KiB", "64 KiB"), ("pages", "56.9 K", "65.5 K")] {
            let mut row = Row::default();
            row.set(Column::ReadSizeMean, 56_934.4);
            row.set(Column::WriteSizeMax, 65_536_u64);
            row.set(Column::SizeUnit, unit);
            let said = [Column::ReadSizeMean, Column::WriteSizeMax].map(|column| humane_in(&row, column));
            assert_eq!(said, [Some(mean.to_owned()), Some(most.to_owned())]);
            assert_eq!(humane_in(&row, Column::ReadSizeMax), None);
        }
    }

    #[test]
    fn values_have_units_that_people_use() {
        for (column, value, text) in [
            (Column::ElapsedNs, Value::Integer(63_826_686_750), "63.8 s"),
            (Column::LatencyP99Ns, Value::Integer(133_631), "134 µs"),
            (Column::LatencyMeanNs, Value::Real(0.0), "0 ns"),
            (Column::LatencyVarianceNs2, Value::Real(8.643_556_6e16), "86436 ms²"),
            (Column::LatencyVarianceNs2, Value::Real(374_271_666.7), "374 µs²"),
            (Column::LifetimeBytesWritten, Value::Real(2.854e15), "2596 TiB"),
            (Column::HostPagesWritten, Value::Integer(7_734_772_239_500), "7.73 T"),
            (Column::ThroughputOpsS, Value::Real(15_667.2), "15.7 K/s"),
            (Column::WriteIos, Value::Integer(339_235), "339 K"),
            (Column::WriteIos, Value::Integer(9_339), "9339"),
            (Column::Frames, Value::Integer(102_400), "102,400"),
            (Column::Seed, Value::Integer(123_456), "123456"),
            (Column::PageBytes, Value::Integer(4096), "4 KiB"),
            (Column::BandwidthBytesS, Value::Real(2.5e8), "250 MB/s"),
            (Column::HitRatio, Value::Real(0.4658), "46.6 %"),
            (Column::HitRatio, Value::Real(0.25), "25.0 %"),
            (Column::TimeNs, Value::Integer(5_000_000_000), "5.00 s"),
            (Column::LatencyP50Ns, Value::Integer(199), "199 ns"),
            (Column::Waf, Value::Real(1.8541), "1.85"),
            (Column::SimWallS, Value::Real(0.5012), "0.501 s"),
            (Column::Alpha, Value::Real(f64::NAN), "–"),
            (Column::Erases, Value::Integer(0), "0"),
        ] {
            assert_eq!(humane(column, &value), text, "{column}");
        }
    }

    #[test]
    fn headings_are_unique_names_without_units() {
        assert_eq!(head(Column::LatencyP99Ns), "latency_p99");
        assert_eq!(head(Column::ThroughputOpsS), "throughput");
        // The names `page` and `file` are taken: columns with these names exist, so the headings keep their
        // unit.
        assert_eq!((head(Column::PageBytes), head(Column::FileBytes)), ("page_bytes", "file_bytes"));
        for column in Column::all() {
            assert_eq!(column_called(head(column)), Ok(column));
            assert_eq!(column_called(column.name()), Ok(column));
        }
    }
}
