//! Writes the request log of a replay: one line of CSV per request. A line has the arrival, the kind and the
//! response time of a request, and its waits if the device reports them.

use crate::StackError;
use fulgurite_base::Nanos;
use fulgurite_files::output::{Named, OutputFile};
use fulgurite_ssd::Waits;
use fulgurite_workload::Op;
use serde::Serialize;
use std::path::Path;

/// A request log that is being written.
pub(super) struct RequestLog(csv::Writer<OutputFile>);

/// The beginning of every request log. No other file begins with these columns.
pub(crate) const BEGINNING: &str = "arrived_ns,op,page,pages,latency_ns,";

/// The columns of a line, in order.
#[derive(Serialize)]
struct Line {
    arrived_ns: u64,
    op: &'static str,
    page: u64,
    pages: u32,
    latency_ns: u64,
    wait_queue_ns: Option<u64>,
    wait_gc_ns: Option<u64>,
    wait_die_ns: Option<u64>,
    wait_channel_ns: Option<u64>,
    wait_buffer_ns: Option<u64>,
}

impl RequestLog {
    /// Creates the file at `path`.
    pub(super) fn create(path: &Path) -> Result<RequestLog, StackError> {
        let file = OutputFile::create(Named::new("--requests-out", path))?;
        Ok(RequestLog(csv::Writer::from_writer(file)))
    }

    /// Writes the line of a completed request.
    pub(super) fn write(
        &mut self,
        arrived: Nanos,
        op: Op,
        page: u64,
        pages: u32,
        latency: Nanos,
        waits: Option<(Nanos, &Waits)>,
    ) -> Result<(), StackError> {
        let op = match op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Trim => "trim",
        };
        let wait = |of: fn(&Waits) -> u64| waits.map(|(_, waits)| of(waits));
        let written = self.0.serialize(Line {
            arrived_ns: arrived.0,
            op,
            page,
            pages,
            latency_ns: latency.0,
            wait_queue_ns: waits.map(|(queue, _)| queue.0),
            wait_gc_ns: wait(|waits| waits.gc),
            wait_die_ns: wait(|waits| waits.die),
            wait_channel_ns: wait(|waits| waits.channel),
            wait_buffer_ns: wait(|waits| waits.buffer),
        });
        Ok(written.map_err(|error| self.0.get_ref().named().failed(error.into()))?)
    }

    /// Completes the file and gives it its final name.
    pub(super) fn finish(mut self) -> Result<(), StackError> {
        self.0.flush().map_err(|error| self.0.get_ref().named().failed(error))?;
        // After the flush the buffer is empty, so `into_inner` cannot fail.
        let file = self.0.into_inner().map_err(|_| StackError::run("the request log was not flushed"))?;
        Ok(file.finish()?)
    }
}
