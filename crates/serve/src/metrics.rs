//! The drive's counts and gauges in Prometheus's text format, version 0.0.4. Counters are since the start, and times
//! are those of the drive's clock. Parts that the drive lacks are left out. docs/how-to/grafana-serve.json is a
//! dashboard of all of them.

use crate::live::{Described, Live};
use fulgurite_base::Nanos;
use fulgurite_ssd::DriveState;
use fulgurite_stack::serve::{Look, PoolLook, Requests};
use std::fmt::{Display, Write};

/// The text of the metrics.
struct Text(String);

impl Text {
    /// Begins a metric. Returns its whole name.
    fn metric(&mut self, name: &str, kind: &str, help: &str) -> String {
        let name = format!("fulgurite_drive_{name}");
        // Writing to a string cannot fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        name
    }

    /// Adds a sample. `labels` is empty or has the form `{label="value"}`.
    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        let name = self.metric(name, "gauge", help);
        self.sample(&name, "", value);
    }

    fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        let name = self.metric(name, "counter", help);
        self.sample(&name, "", value);
    }

    fn counter_by_op(&mut self, name: &str, help: &str, look: &Look, value: impl Fn(&Requests) -> u64) {
        let name = self.metric(name, "counter", help);
        for (op, requests) in ops(look) {
            self.sample(&name, &format!("{{op=\"{op}\"}}"), value(requests));
        }
    }
}

fn ops(look: &Look) -> [(&'static str, &Requests); 2] {
    [("read", &look.reads), ("write", &look.writes)]
}

/// Escapes the value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Returns the metrics of a drive.
pub(crate) fn text(live: &Live, drive: &Described) -> String {
    let mut text = Text(String::new());
    let now = &live.now;
    let info = text.metric("info", "gauge", "The drive, by its name; always 1.");
    text.sample(&info, &format!("{{device=\"{}\"}}", escaped(&drive.device)), 1);
    text.gauge("size_bytes", "The size of the drive.", drive.bytes);
    text.counter("time_seconds_total", "Time since the start, on the drive's clock.", now.time.as_secs_f64());
    text.gauge("power_on", "Whether the drive has power.", u8::from(now.is_on));
    text.counter("power_cuts_total", "Power cuts.", now.power_cuts);
    text.gauge("faults", "Kinds of faults that the drive has now.", now.faults.len());
    text.gauge("requests_in_flight", "Requests without an answer.", now.in_flight);
    text.gauge("unflushed_pages", "Pages with writes that a power cut may lose.", now.pages_unflushed);
    requests(&mut text, &now.look);
    if now.lateness.speed.is_some() {
        let seconds = now.lateness.sum_ns as f64 / 1e9;
        text.counter(
            "late_answers_total",
            "Answers sent later than due by a tenth of their latency.",
            now.lateness.late,
        );
        text.counter(
            "lateness_seconds_total",
            "Time by which answers were sent later than due, on the wall clock.",
            seconds,
        );
    }
    if let Some(PoolLook { frames, dirty_pages, hits, misses }) = now.look.pool {
        text.gauge("pool_frames", "Frames of the pool before the drive.", frames);
        text.gauge("pool_dirty_pages", "Dirty pages in the pool.", dirty_pages);
        text.counter("pool_hits_total", "Requests for a page that was in the pool.", hits);
        text.counter("pool_misses_total", "Requests for a page that was not in the pool.", misses);
    }
    counts(&mut text, &now.look);
    if let Some(state) = &now.look.drive {
        flash(&mut text, state, u64::from(now.look.page_bytes));
    }
    text.0
}

/// Adds what the requests of clients did.
fn requests(text: &mut Text, look: &Look) {
    let page_bytes = u64::from(look.page_bytes);
    text.counter_by_op("request_bytes_total", "Bytes of completed requests, in whole pages.", look, |of| {
        of.pages * page_bytes
    });
    let name = text.metric(
        "request_latency_seconds",
        "histogram",
        "Latencies of completed requests, on the drive's clock.",
    );
    for (op, of) in ops(look) {
        for (bound, count) in Requests::BOUNDS.iter().zip(&of.counts_up_to) {
            let labels = format!("{{op=\"{op}\",le=\"{}\"}}", bound.as_secs_f64());
            text.sample(&format!("{name}_bucket"), &labels, count);
        }
        text.sample(&format!("{name}_bucket"), &format!("{{op=\"{op}\",le=\"+Inf\"}}"), of.count);
        let labels = format!("{{op=\"{op}\"}}");
        text.sample(&format!("{name}_sum"), &labels, of.latency_sum_ns as f64 / 1e9);
        text.sample(&format!("{name}_count"), &labels, of.count);
    }
}

/// Adds what was written and read inside the drive.
fn counts(text: &mut Text, look: &Look) {
    if let (Some(written), Some(programmed)) = (look.host_pages_written, look.pages_programmed) {
        text.counter(
            "host_written_pages_total",
            "Pages that clients wrote, or the pool before the drive.",
            written,
        );
        text.counter(
            "programmed_pages_total",
            "Pages written for the host and for collection. Divided by those of the host: the write amplification.",
            programmed,
        );
    }
    if let Some(flash) = &look.flash {
        text.counter("copied_pages_total", "Pages that collection copied.", flash.pages_copied);
        text.counter("read_pages_total", "Pages read from the flash.", flash.pages_read);
        text.counter("erases_total", "Erased segments.", flash.erases);
    }
}

/// Adds the state of a simulated drive.
fn flash(text: &mut Text, state: &DriveState, page_bytes: u64) {
    text.gauge("waiting_commands", "Commands that wait for a slot or for room in the buffer.", state.waiting);
    let buffer = [state.buffer_pages, state.buffer_pages_at_most].map(|pages| u64::from(pages) * page_bytes);
    text.gauge("buffer_bytes", "Bytes in the write buffer.", buffer[0]);
    text.gauge("buffer_capacity_bytes", "The capacity of the write buffer.", buffer[1]);
    if let Some(segments) = &state.segments {
        text.gauge("segments", "Segments.", segments.all);
        text.gauge("free_segments", "Free segments.", segments.free);
        text.gauge(
            "free_segments_wanted",
            "Free segments below which collection starts.",
            segments.threshold,
        );
        let share = segments.valid_pages as f64 / segments.pages as f64;
        text.gauge("valid_ratio", "The share of valid pages.", share);
        text.gauge(
            "collection_state",
            "Collection: 0 idle, 1 running, 2 writes wait for it, 3 all requests wait for it.",
            segments.state as u8,
        );
    }
    let seconds = |time: Nanos| time.as_secs_f64();
    let name = text.metric("die_busy_seconds_total", "counter", "Time that a die has spent on operations.");
    for (number, die) in state.dies.iter().enumerate() {
        for (op, time) in die.busy.by_kind() {
            let labels = format!("{{channel=\"{}\",die=\"{number}\",op=\"{op}\"}}", die.channel);
            text.sample(&name, &labels, seconds(time));
        }
    }
    let name = text.metric("die_waiting_operations", "gauge", "Operations that wait for a die.");
    for (number, die) in state.dies.iter().enumerate() {
        text.sample(&name, &format!("{{channel=\"{}\",die=\"{number}\"}}", die.channel), die.waiting);
    }
    let name =
        text.metric("channel_busy_seconds_total", "counter", "Time that a channel has spent on transfers.");
    for (number, time) in state.channels.iter().enumerate() {
        text.sample(&name, &format!("{{channel=\"{number}\"}}"), seconds(*time));
    }
}
