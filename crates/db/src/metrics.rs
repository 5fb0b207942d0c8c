//! Publishes the statistics of stores with the crate `metrics`, so that the exporter of the program shows them.

use crate::Db;
use fulgurite_engine::Error;

/// The numbers that go down as well as up. All others only count.
const GAUGES: &[&str] = &[
    "log_bytes_used",
    "pages_changed",
    "pages_used",
    "pages",
    "space_bytes",
    "version_bytes",
    "record_bytes",
    "record_limit_bytes",
    "records_kept",
    "records_pending",
    "locks",
    "frames",
];

impl Db {
    /// Sets a metric for each number of the [`Statistics`](crate::Statistics). Its name is `fulgurite_` and the name in
    /// [`Statistics::fields`](crate::Statistics::fields), its label `store` the path of the file. Counts are counters,
    /// sizes are gauges. Call it when the exporter is about to be read, or every few seconds.
    pub fn publish_metrics(&self) -> Result<(), Error> {
        let store = self.path().display().to_string();
        for statistics in self.statistics()? {
            for (field, value) in statistics.fields() {
                let (name, labels) = (format!("fulgurite_{field}"), [("store", store.clone())]);
                match GAUGES.contains(&field) {
                    true => metrics::gauge!(name, &labels).set(value as f64),
                    false => metrics::counter!(name, &labels).absolute(value),
                }
            }
        }
        Ok(())
    }
}
