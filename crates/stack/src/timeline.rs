//! A drive's timeline in the Chrome trace event format, which Perfetto (ui.perfetto.dev) and
//! chrome://tracing open: one process each for the host, the schedule, the channels and the dies.
//!
//! "Trace Event Format" (Google, 2016): complete events (`X`) with times in microseconds; the host's
//! requests overlap, so they are asynchronous events (`b`, `e`).

use crate::StackError;
use fulgurite_base::Nanos;
use fulgurite_ftl::schedule::ScheduleState;
use fulgurite_ssd::{Span, SpanKind, Timeline, Track};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Writes `timeline` to `path`, whole or not at all.
pub fn write(path: &Path, timeline: &Timeline) -> Result<(), StackError> {
    let failed =
        |error: std::io::Error| StackError::request(format!("--trace-out {}: {error}", path.display()));
    let unfinished = path.with_extension("unfinished");
    let write = || {
        let mut file = BufWriter::new(File::create(&unfinished)?);
        write_events(&mut file, timeline)?;
        file.into_inner()?.sync_all()?;
        std::fs::rename(&unfinished, path)
    };
    write().map_err(failed)?;
    if timeline.left_out() > 0 {
        eprintln!("timeline: full; {} later spans were left out", timeline.left_out());
    }
    Ok(())
}

fn write_events(file: &mut impl Write, timeline: &Timeline) -> std::io::Result<()> {
    writeln!(file, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    for (process, name) in PROCESSES {
        writeln!(
            file,
            "{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{process},\"tid\":0,\"args\":{{\"name\":\"{name}\"}}}},"
        )?;
    }
    let tracks: BTreeSet<Track> = timeline.spans().iter().map(|span| span.track).collect();
    for track in tracks {
        let (process, thread) = ids(track);
        let name = match track {
            Track::Host => "requests".to_owned(),
            Track::Schedule => "state".to_owned(),
            Track::Channel(channel) => format!("channel {channel}"),
            Track::Die(die) => format!("die {die}"),
        };
        writeln!(
            file,
            "{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{process},\"tid\":{thread},\"args\":{{\"name\":\"{name}\"}}}},"
        )?;
    }
    for (number, span) in timeline.spans().iter().enumerate() {
        write_span(file, number, span)?;
    }
    // The format allows a list without its end; a last element without a comma makes it valid JSON too.
    writeln!(file, "{{\"ph\":\"M\",\"name\":\"end\",\"pid\":0,\"tid\":0,\"args\":{{}}}}]}}")
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

fn write_span(file: &mut impl Write, number: usize, span: &Span) -> std::io::Result<()> {
    let (process, thread) = ids(span.track);
    let (name, category) = words(span.kind);
    let micros = |time: Nanos| format!("{}.{:03}", time.0 / 1_000, time.0 % 1_000);
    let Span { place, pages, .. } = span;
    if span.track == Track::Host {
        for (phase, at) in [("b", span.start), ("e", span.end)] {
            writeln!(
                file,
                "{{\"ph\":\"{phase}\",\"cat\":\"{category}\",\"name\":\"{name}\",\"id\":{number},\"pid\":{process},\"tid\":{thread},\"ts\":{},\"args\":{{\"page\":{place},\"pages\":{pages}}}}},",
                micros(at)
            )?;
        }
        return Ok(());
    }
    writeln!(
        file,
        "{{\"ph\":\"X\",\"cat\":\"{category}\",\"name\":\"{name}\",\"pid\":{process},\"tid\":{thread},\"ts\":{},\"dur\":{},\"args\":{{\"block\":{place},\"pages\":{pages}}}}},",
        micros(span.start),
        micros(span.end - span.start)
    )
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
