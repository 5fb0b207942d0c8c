//! Tests that the statistics reach the recorder of the crate `metrics`.

#![cfg(feature = "metrics")]

use fulgurite_db::{Db, Options};
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Keeps the last value of each metric, by kind and name.
#[derive(Clone, Default)]
struct Last(Arc<Mutex<BTreeMap<(&'static str, String), f64>>>);

/// A metric of a kind and a name.
struct Metric(Last, &'static str, String);

impl Metric {
    fn set(&self, value: f64) {
        self.0.0.lock().unwrap().insert((self.1, self.2.clone()), value);
    }
}

impl CounterFn for Metric {
    fn increment(&self, _: u64) {
        panic!("the counts are absolute");
    }
    fn absolute(&self, value: u64) {
        self.set(value as f64);
    }
}

impl GaugeFn for Metric {
    fn increment(&self, _: f64) {
        panic!("the sizes are set");
    }
    fn decrement(&self, _: f64) {
        panic!("the sizes are set");
    }
    fn set(&self, value: f64) {
        self.set(value);
    }
}

impl Last {
    fn metric(&self, kind: &'static str, key: &Key) -> Arc<Metric> {
        assert_eq!(key.labels().map(|label| label.key()).collect::<Vec<_>>(), ["store"]);
        Arc::new(Metric(self.clone(), kind, key.name().to_owned()))
    }
}

impl Recorder for Last {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.metric("counter", key))
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.metric("gauge", key))
    }
    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        panic!("there is no histogram")
    }
}

#[test]
fn counts_and_sizes_are_published() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path().join("a.store"), Options::default()).unwrap();
    let table = db.create_table("t").unwrap();
    (0..5u8).for_each(|key| db.put(&table, &[key], b"value").unwrap());
    let last = Last::default();
    metrics::with_local_recorder(&last, || db.publish_metrics().unwrap());
    let found = last.0.lock().unwrap();
    let value = |kind, name: &str| found[&(kind, format!("fulgurite_{name}"))];
    assert_eq!(value("counter", "commits"), 5.0);
    assert!(value("gauge", "pages_changed") > 0.0);
    assert!(value("gauge", "pages_used") >= 3.0);
    assert_eq!(found.len(), db.statistics().unwrap()[0].fields().len());
}
