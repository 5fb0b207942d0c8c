//! The result of anything: a table of flat rows. Columns come in one fixed order, and a column is
//! there if any row has it.

use serde_json::{Map, Number};
use std::fmt::Write as _;

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A name.
    Text(String),
    /// A count or a time in whole nanoseconds.
    Integer(u64),
    /// A ratio, a rate or a mean.
    Real(f64),
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::Integer(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Value {
        Value::Integer(u64::from(value))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Real(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::Text(value)
    }
}

impl Value {
    /// As JSON; a number that is not finite is null.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Text(text) => text.clone().into(),
            Value::Integer(integer) => (*integer).into(),
            Value::Real(real) => Number::from_f64(*real).map_or(serde_json::Value::Null, Into::into),
        }
    }

    /// The number, if it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Text(_) => None,
            Value::Integer(integer) => Some(*integer as f64),
            Value::Real(real) => Some(*real),
        }
    }

    /// The exact text: what CSV holds.
    pub fn exact(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            Value::Integer(integer) => integer.to_string(),
            Value::Real(real) => real.to_string(),
        }
    }

    /// The text for people: reals to four significant digits, integers in groups of three.
    pub fn readable(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            Value::Integer(integer) => grouped(&integer.to_string()),
            Value::Real(real) if *real == 0.0 => "0".to_owned(),
            Value::Real(real) => {
                let digits = (3 - real.abs().log10().floor() as i32).clamp(0, 6) as usize;
                let text = format!("{real:.digits$}");
                let (whole, rest) =
                    text.split_once('.').map_or((text.as_str(), ""), |(whole, rest)| (whole, rest));
                let dot = if rest.is_empty() { "" } else { "." };
                format!("{}{dot}{rest}", grouped(whole))
            }
        }
    }
}

fn grouped(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let mut grouped = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Every column that a row may have, in order.
pub const ORDER: &[&str] = &[
    "run_id",
    "part",
    // What was run.
    "workload",
    "device",
    "channels",
    "replacement",
    "write_back",
    "n_w",
    "n_e",
    "buffers",
    "ahead",
    "prefetch",
    "layer",
    "placement",
    "victim",
    "schedule",
    "frames",
    "pages",
    "page_bytes",
    "segments",
    "segment_pages",
    "gc_reserve",
    "users",
    "speed",
    "cpu_per_request_ns",
    "seed",
    "group",
    "time_pages",
    // What came of it.
    "time_ns",
    "interval_ns",
    "ops",
    "elapsed_ns",
    "throughput_ops_s",
    "hits",
    "misses",
    "hit_ratio",
    "read_ios",
    "write_ios",
    "pages_read",
    "pages_written",
    "pages_flushed",
    "prefetched",
    "prefetch_hits",
    "prefetch_wasted",
    "write_waits",
    "rescued",
    "pages_checked",
    "latency_mean_ns",
    "latency_stddev_ns",
    "latency_p50_ns",
    "latency_p95_ns",
    "latency_p99_ns",
    "latency_p999_ns",
    "latency_max_ns",
    "latency_variance_ns2",
    "bandwidth_bytes_s",
    "read_bandwidth_bytes_s",
    "write_bandwidth_bytes_s",
    "read_latency_mean_ns",
    "read_latency_stddev_ns",
    "read_latency_p50_ns",
    "read_latency_p95_ns",
    "read_latency_p99_ns",
    "read_latency_p999_ns",
    "read_latency_max_ns",
    "write_latency_mean_ns",
    "write_latency_stddev_ns",
    "write_latency_p50_ns",
    "write_latency_p95_ns",
    "write_latency_p99_ns",
    "write_latency_p999_ns",
    "write_latency_max_ns",
    "wait_queue_mean_ns",
    "wait_gc_mean_ns",
    "wait_die_mean_ns",
    "wait_channel_mean_ns",
    "wait_buffer_mean_ns",
    "wait_gc_max_ns",
    "read_wait_gc_mean_ns",
    "read_wait_die_mean_ns",
    "read_wait_channel_mean_ns",
    "write_wait_gc_mean_ns",
    "write_wait_die_mean_ns",
    "write_wait_channel_mean_ns",
    "host_pages_written",
    "flash_pages_read",
    "flash_pages_programmed",
    "gc_pages_copied",
    "erases",
    "waf",
    "waf_steady",
    "waf_closed_form",
    "spare_effective",
    "layer_pages_copied",
    "layer_pages_padded",
    "layer_segments_freed",
    "layer_waf",
    "drive_waf",
    "merged_pages",
    "overlaps",
    "suspensions",
    "energy_j",
    "energy_per_page_written_uj",
    "wear_min",
    "wear_mean",
    "wear_max",
    "mapping_bytes",
    "layer_mapping_bytes",
    "placement_bytes",
    "valid_share_error",
    "groups",
    "groups_sized",
    "hot_segments",
    "last_segments",
    "group_segments",
    "segments_collected",
    "valid_share",
    "share_c1",
    "share_c2",
    "share_c3",
    "share_c4",
    "share_c5",
    "share_c6",
    "lifetime_bytes_written",
    "lifetime_dwpd_5y",
    "lifetime_years_at_this_rate",
    // Of a device.
    "alpha",
    "alpha_target",
    "k_r",
    "k_r_target",
    "k_w",
    "k_w_target",
    "k_r_90",
    "k_w_90",
    "read_iops_max",
    "write_iops_max",
    "verdict",
    // Of a trace.
    "file",
    "format",
    "requests",
    "reads",
    "writes",
    "trims",
    "read_share",
    "read_size_min",
    "read_size_mean",
    "read_size_max",
    "write_size_min",
    "write_size_mean",
    "write_size_max",
    "size_unit",
    "footprint_pages",
    "footprint_read_pages",
    "footprint_written_pages",
    "duration_ns",
    "rate_requests_s",
    "peak_requests_s",
    "burstiness",
    "volumes",
    "sequential_share",
    "reuse_share",
    "skipped",
    "skipped_why",
    "requests_left_out",
    "loses",
    "times_clamped",
    // Of a list.
    "kind",
    "name",
    "about",
    "default",
    "targets",
    "source",
    // For people.
    "note",
    "explanation",
    // Of the simulator itself.
    "sim_wall_s",
    "sim_ops_s",
    "peak_rss_bytes",
];

/// The columns that tell one run of a grid from another.
pub const AXES: &[&str] = &[
    "part",
    "workload",
    "device",
    "replacement",
    "write_back",
    "prefetch",
    "placement",
    "victim",
    "schedule",
    "frames",
    "pages",
    "page_bytes",
    "segments",
    "segment_pages",
    "gc_reserve",
    "users",
    "speed",
    "cpu_per_request_ns",
    "seed",
    "group",
    "time_pages",
];

/// One run's results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row(Vec<(&'static str, Value)>);

impl Row {
    /// Sets a column, one of [`ORDER`].
    pub fn set(&mut self, column: &'static str, value: impl Into<Value>) {
        debug_assert!(ORDER.contains(&column), "{column} has no place among the columns");
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| *known == column) {
            Some((_, old)) => *old = value,
            None => self.0.push((column, value)),
        }
    }

    /// Sets a column if there is a value.
    pub fn set_some(&mut self, column: &'static str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.set(column, value);
        }
    }

    /// Drops the columns about the simulator's own cost: they differ from one execution to the
    /// next, and mean little where runs share the machine.
    pub fn drop_cost(&mut self) {
        self.0.retain(|(column, _)| !matches!(*column, "sim_wall_s" | "sim_ops_s" | "peak_rss_bytes"));
    }

    /// A column's value.
    pub fn get(&self, column: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| *known == column).map(|(_, value)| value)
    }

    /// A column's number.
    pub fn number(&self, column: &str) -> Option<f64> {
        self.get(column)?.as_f64()
    }

    /// A column's text for people; empty where there is none.
    pub fn text(&self, column: &str) -> String {
        self.get(column).map(Value::readable).unwrap_or_default()
    }
}

/// Rows under common columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The rows, in the order of the runs.
    pub rows: Vec<Row>,
}

impl Table {
    /// The columns that any row has, in order.
    pub fn columns(&self) -> Vec<&'static str> {
        let has = |column: &&&str| self.rows.iter().any(|row| row.get(column).is_some());
        ORDER.iter().filter(has).copied().collect()
    }

    /// What to show people of a table whose main columns are `main`: those that it has, and
    /// whatever else sets one run apart from another.
    pub fn columns_for_people(&self, main: &[&str]) -> Vec<&'static str> {
        let varies = |column: &str| self.rows.iter().any(|row| row.get(column) != self.rows[0].get(column));
        let is_axis = |column: &str| AXES.contains(&column) && varies(column);
        self.columns().into_iter().filter(|column| main.contains(column) || is_axis(column)).collect()
    }

    /// One JSON array of flat objects, a row a line.
    pub fn to_json(&self) -> String {
        let rows: Vec<String> = self.json_rows().collect();
        if rows.is_empty() { "[]\n".to_owned() } else { format!("[\n{}\n]\n", rows.join(",\n")) }
    }

    /// JSON lines: an object a row.
    pub fn to_json_lines(&self) -> String {
        self.json_rows().map(|row| row + "\n").collect()
    }

    fn json_rows(&self) -> impl Iterator<Item = String> {
        let columns = self.columns();
        self.rows.iter().map(move |row| {
            let cells =
                columns.iter().filter_map(|column| Some(((*column).to_owned(), row.get(column)?.to_json())));
            serde_json::Value::Object(cells.collect::<Map<_, _>>()).to_string()
        })
    }

    /// CSV with a header, RFC 4180.
    pub fn to_csv(&self) -> String {
        let columns = self.columns();
        if columns.is_empty() {
            // The library would write a line of one empty cell.
            return "\n".to_owned();
        }
        let mut csv = csv::Writer::from_writer(Vec::new());
        let whole = "rows of one length are written into memory";
        csv.write_record(&columns).expect(whole);
        for row in &self.rows {
            let cells = columns.iter().map(|column| row.get(column).map(Value::exact).unwrap_or_default());
            csv.write_record(cells).expect(whole);
        }
        String::from_utf8(csv.into_inner().expect(whole)).expect("cells are text")
    }

    /// An aligned table of `columns` for people; text to the left, numbers to the right, notes
    /// underneath.
    pub fn to_text(&self, columns: &[&str]) -> String {
        let cells: Vec<Vec<String>> =
            std::iter::once(columns.iter().map(|column| (*column).to_owned()).collect())
                .chain(self.rows.iter().map(|row| columns.iter().map(|column| row.text(column)).collect()))
                .collect();
        let is_text: Vec<bool> = columns.iter().map(|column| self.is_text(column)).collect();
        let mut text = aligned(&cells, &is_text);
        let mut notes: Vec<String> =
            self.rows.iter().map(|row| row.text("note")).filter(|note| !note.is_empty()).collect();
        notes.dedup();
        for note in notes {
            text += &format!("\n{note}\n");
        }
        text
    }

    /// The same turned round: a line for every column. For few rows with many columns.
    pub fn to_upright_text(&self, columns: &[&str]) -> String {
        let line = |column: &&str| {
            std::iter::once((*column).to_owned())
                .chain(self.rows.iter().map(|row| row.text(column)))
                .collect()
        };
        let cells: Vec<Vec<String>> = columns.iter().map(line).collect();
        let mut is_text = vec![false; self.rows.len() + 1];
        is_text[0] = true;
        aligned(&cells, &is_text)
    }

    /// Whether a column holds names rather than numbers.
    pub fn is_text(&self, column: &str) -> bool {
        self.rows.iter().any(|row| matches!(row.get(column), Some(Value::Text(_))))
    }
}

/// Cells under each other, those of a text column to the left.
fn aligned(cells: &[Vec<String>], is_text: &[bool]) -> String {
    let width = |at: usize| cells.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..is_text.len()).map(width).collect();
    let mut text = String::new();
    for row in cells {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            let width = widths[at];
            let _ =
                if is_text[at] { write!(line, "{cell:<width$}  ") } else { write!(line, "{cell:>width$}  ") };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut first = Row::default();
        first.set("alpha", 2.8166);
        first.set("device", "p4510:channels=4,op=7%");
        first.set("ops", 1_000_000u64);
        let mut second = Row::default();
        second.set("device", "sata");
        second.set("ops", 5u64);
        Table { rows: vec![first, second] }
    }

    #[test]
    fn columns_keep_the_common_order() {
        assert_eq!(table().columns(), ["device", "ops", "alpha"]);
    }

    #[test]
    fn every_form_says_the_same() {
        let table = table();
        assert_eq!(table.to_csv(), "device,ops,alpha\n\"p4510:channels=4,op=7%\",1000000,2.8166\nsata,5,\n");
        assert_eq!(table.to_json_lines().lines().nth(1), Some(r#"{"device":"sata","ops":5}"#));
        let parsed: serde_json::Value = serde_json::from_str(&table.to_json()).unwrap();
        assert_eq!(parsed[0]["alpha"], 2.8166);
        assert_eq!(
            table.to_text(&table.columns()),
            "device                        ops  alpha\np4510:channels=4,op=7%  1,000,000  2.817\nsata                            5\n"
        );
    }

    #[test]
    fn numbers_are_readable() {
        for (real, text) in [
            (0.0, "0"),
            (12_345.678, "12,346"),
            (0.123_456, "0.1235"),
            (1.0, "1.000"),
            (-1_234.5, "-1,234"),
            (99.99, "99.99"),
        ] {
            assert_eq!(Value::Real(real).readable(), text);
        }
        assert_eq!(Value::Integer(1_234_567).readable(), "1,234,567");
    }
}
