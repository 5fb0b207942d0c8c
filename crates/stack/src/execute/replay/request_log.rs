//! A line of CSV for every request of a replay.

use crate::StackError;
use fulgurite_base::Nanos;
use fulgurite_ssd::Waits;
use fulgurite_workload::Op;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Every request as a line of CSV: when it came, what it was, how long it took and what it waited for, where the
/// device tells that.
pub(super) struct RequestLog {
    path: PathBuf,
    unfinished: PathBuf,
    file: BufWriter<File>,
}

impl RequestLog {
    pub fn create(path: &Path) -> Result<RequestLog, StackError> {
        let unfinished = path.with_extension("unfinished");
        let file = File::create(&unfinished).map_err(|error| RequestLog::failed(path, &error))?;
        let mut log = RequestLog { path: path.to_path_buf(), unfinished, file: BufWriter::new(file) };
        let header = "arrived_ns,op,page,pages,latency_ns,wait_queue_ns,wait_gc_ns,wait_die_ns,wait_channel_ns,wait_buffer_ns";
        writeln!(log.file, "{header}").map_err(|error| RequestLog::failed(path, &error))?;
        Ok(log)
    }

    fn failed(path: &Path, error: &io::Error) -> StackError {
        StackError::request(format!("--requests-out {}: {error}", path.display()))
    }

    pub fn write(
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
        let (arrived, latency) = (arrived.0, latency.0);
        let mut line = || {
            write!(self.file, "{arrived},{op},{page},{pages},{latency},")?;
            match waits {
                Some((queue, Waits { gc, die, channel, buffer })) => {
                    writeln!(self.file, "{},{gc},{die},{channel},{buffer}", queue.0)
                }
                None => writeln!(self.file, ",,,,"),
            }
        };
        line().map_err(|error| RequestLog::failed(&self.path, &error))
    }

    pub fn finish(self) -> Result<(), StackError> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error);
        let renamed =
            file.and_then(|file| file.sync_all()).and_then(|()| fs::rename(&self.unfinished, &self.path));
        renamed.map_err(|error| RequestLog::failed(&self.path, &error))
    }
}
