//! Writes a drive's timeline in the Chrome trace event format. Perfetto (ui.perfetto.dev) and
//! chrome://tracing open such a file. The host, the schedule, the channels and the dies are a process each.
//!
//! The format is described in "Trace Event Format" (Google, 2016). Operations are complete events (`X`) with
//! times in microseconds. The host's requests overlap, so they are asynchronous events (`b`, `e`).

use crate::{StackError, Unit, Value, progress};
use fulgurite_base::Nanos;
use fulgurite_files::output::{Named, OutputFile, is_standard, write_whole};
use fulgurite_ftl::schedule::ScheduleState;
use fulgurite_ssd::{Span, SpanKind, Timeline, Track};
use serde::{Serialize, Serializer};
use serde_json::ser::Formatter;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

/// The beginning of every timeline file. Other programs do not write the members in this order and one event
/// per line.
pub(crate) const BEGINNING: &str = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";

/// Writes `timeline` to `path`, completely or not at all.
pub(crate) fn write(path: &Path, timeline: &Timeline) -> Result<(), StackError> {
    let named = Named::new("--trace-out", path);
    write_whole(named, |file: &mut OutputFile| -> Result<(), StackError> {
        let mut serializer = serde_json::Serializer::with_formatter(file, EventALine);
        let document = Document { unit: "ns", events: Events(timeline) };
        Ok(document.serialize(&mut serializer).map_err(|error| named.failed(error.into()))?)
    })?;
    progress::remark(format!("timeline: {}", recorded(path, timeline)));
    Ok(())
}

/// Describes the recorded part of the timeline in a remark.
fn recorded(path: &Path, timeline: &Timeline) -> String {
    let name = if is_standard(path) { "standard output".to_owned() } else { path.display().to_string() };
    let count = |count: u64| Value::Integer(count).readable();
    let spans = timeline.spans();
    let (has, left_out) = (count(spans.len() as u64), timeline.left_out());
    if left_out == 0 {
        return format!("{name} has all {has} spans of the run");
    }
    let end = spans.iter().map(|span| span.end.0).max().unwrap_or(0);
    format!(
        "{name} has the first {has} spans, up to {} of the run; {} later ones were left out, because viewers open \
            no more; a smaller --ops records all",
        Unit::Nanoseconds.humane(end as f64),
        count(left_out)
    )
}

/// A JSON formatter that writes one event per line, so that line tools can read the file. No event contains a
/// list.
struct EventALine;

impl Formatter for EventALine {
    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        writer.write_all(if first { b"\n" } else { b",\n" })
    }
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "displayTimeUnit")]
    unit: &'static str,
    #[serde(rename = "traceEvents")]
    events: Events<'a>,
}

/// All events of a timeline. Each event is built when it is written, since a timeline has millions of them.
struct Events<'a>(&'a Timeline);

impl Serialize for Events<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let spans = self.0.spans();
        let tracks: BTreeSet<Track> = spans.iter().map(|span| span.track).collect();
        let processes =
            PROCESSES.into_iter().map(|(pid, name)| Event::naming("process_name", (pid, 0), name));
        let threads =
            tracks.into_iter().map(|track| Event::naming("thread_name", ids(track), thread_name(track)));
        let spans = spans.iter().enumerate().flat_map(|(number, span)| events(number, span));
        serializer.collect_seq(processes.chain(threads).chain(spans))
    }
}

#[derive(Serialize)]
struct Event {
    ph: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'static str>,
    name: &'static str,
    /// The number that joins the two ends of an asynchronous event; `None` for other events.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<usize>,
    pid: u32,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    args: EventArguments,
}

#[derive(Serialize)]
#[serde(untagged)]
enum EventArguments {
    Name { name: Cow<'static, str> },
    Request { page: u32, pages: u32 },
    Flash { block: u32, pages: u32 },
}

impl Event {
    /// Creates the event that names a process or a thread.
    fn naming(what: &'static str, (pid, tid): (u32, u32), name: impl Into<Cow<'static, str>>) -> Event {
        let args = EventArguments::Name { name: name.into() };
        Event { ph: "M", cat: None, name: what, id: None, pid, tid, ts: None, dur: None, args }
    }
}

/// Returns the events of a span. A host request has one event for each end, another operation has a single
/// event.
fn events(number: usize, span: &Span) -> impl Iterator<Item = Event> + use<> {
    let (pid, tid) = ids(span.track);
    let (name, category) = words(span.kind);
    let Span { track, start, end, place, pages, .. } = *span;
    let event = move |ph, id, at, dur, args| Event {
        ph,
        cat: Some(category),
        name,
        id,
        pid,
        tid,
        ts: Some(micros(at)),
        dur,
        args,
    };
    let request = || EventArguments::Request { page: place, pages };
    let (first, second) = if track == Track::Host {
        (
            event("b", Some(number), start, None, request()),
            Some(event("e", Some(number), end, None, request())),
        )
    } else {
        let flash = EventArguments::Flash { block: place, pages };
        (event("X", None, start, Some(micros(end - start)), flash), None)
    };
    std::iter::once(first).chain(second)
}

/// Converts a time to microseconds, the unit of the format. Whole nanoseconds up to 104 days stay exact.
fn micros(time: Nanos) -> f64 {
    time.0 as f64 / 1e3
}

const PROCESSES: [(u32, &str); 4] = [(1, "host"), (2, "schedule"), (3, "channels"), (4, "dies")];

fn ids(track: Track) -> (u32, u32) {
    match track {
        Track::Host => (1, 0),
        Track::Schedule => (2, 0),
        Track::Channel(channel) => (3, channel),
        Track::Die(die) => (4, die),
    }
}

fn thread_name(track: Track) -> Cow<'static, str> {
    match track {
        Track::Host => "requests".into(),
        Track::Schedule => "state".into(),
        Track::Channel(channel) => format!("channel {channel}").into(),
        Track::Die(die) => format!("die {die}").into(),
    }
}

fn words(kind: SpanKind) -> (&'static str, &'static str) {
    match kind {
        SpanKind::HostRead => ("read", "host"),
        SpanKind::HostWrite => ("write", "host"),
        SpanKind::HostOther => ("other", "host"),
        SpanKind::Read => ("read", "host"),
        SpanKind::Program => ("program", "host"),
        SpanKind::MoveRead => ("GC read", "gc"),
        SpanKind::MoveProgram => ("GC program", "gc"),
        SpanKind::Erase => ("GC erase", "gc"),
        SpanKind::Transfer => ("transfer", "channel"),
        SpanKind::State(ScheduleState::Idle) => ("0: no collection", "state"),
        SpanKind::State(ScheduleState::Collecting) => ("1: collecting", "state"),
        SpanKind::State(ScheduleState::Pressed) => ("2: writes wait", "state"),
        SpanKind::State(ScheduleState::Exclusive) => ("3: everything waits", "state"),
    }
}
