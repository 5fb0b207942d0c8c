//! Writes traces in every format that can be written record by record.

use super::format::Format;
use super::record::{Record, Unit};
use super::row::Writer;
use fulgurite_base::{Nanos, SpecError};
use std::io::{self, Write};

/// The greatest byte address that the reader of every format accepts.
const FARTHEST: u64 = u64::MAX >> 2;

/// A writer of records in a trace format.
pub struct TraceWriter<W> {
    out: W,
    encoder: Encoder,
}

/// Encodes records into a buffer. It is not generic, so that it is compiled and optimised in this crate.
struct Encoder {
    format: Format,
    writer: &'static Writer,
    /// The size of a page in bytes, for conversions between pages and bytes.
    page_bytes: u64,
    from: Unit,
    before: Nanos,
    /// The encoded records that are not written yet.
    buffer: Vec<u8>,
    left_out: u64,
    /// For each property that the format cannot hold, whether any written record had it.
    lost: Vec<bool>,
    /// Whether any request in bytes was extended to whole pages, because the format's unit is pages.
    has_parts_of_pages: bool,
}

impl<W: Write> TraceWriter<W> {
    /// Creates a writer of `format` to `out`, for records in the unit `from` and pages of `page_bytes` bytes.
    ///
    /// Fails if the format cannot be written.
    pub fn new(out: W, format: Format, from: Unit, page_bytes: u64) -> Result<TraceWriter<W>, SpecError> {
        let Some(writer) = &format.row().writer else {
            let writable = Format::all().iter().filter(|format| format.row().writer.is_some());
            let names: Vec<&str> = writable.map(|format| format.name()).collect();
            return Err(SpecError::new(format!(
                "{} cannot be written record by record; accepted: {}",
                format.name(),
                names.join(" ")
            )));
        };
        if page_bytes == 0 {
            return Err(SpecError::new("a page of 0 bytes holds nothing; write a size like 4KiB"));
        }
        let encoder = Encoder {
            format,
            writer,
            page_bytes,
            from,
            before: Nanos::ZERO,
            buffer: writer.header.as_bytes().to_vec(),
            left_out: 0,
            lost: vec![false; writer.loses.len()],
            has_parts_of_pages: false,
        };
        Ok(TraceWriter { out, encoder })
    }

    /// Writes a record. A record is skipped and counted if the format does not have its operation (mostly
    /// trims), or if its address in bytes is too large.
    pub fn write(&mut self, record: &Record) -> io::Result<()> {
        // Output is written in large pieces, because each piece may be compressed separately.
        if self.encoder.add(record) > 1 << 16 { self.spill() } else { Ok(()) }
    }

    fn spill(&mut self) -> io::Result<()> {
        self.out.write_all(&self.encoder.buffer)?;
        self.encoder.buffer.clear();
        Ok(())
    }

    /// Ends the trace. Returns the output, and the number of requests that the format could not hold.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        self.encoder.buffer.extend(self.encoder.writer.footer.as_bytes());
        self.spill()?;
        self.out.flush()?;
        Ok((self.out, self.encoder.left_out))
    }

    /// Returns the properties of the records so far that the format could not hold, in words; `nothing` if
    /// there are none.
    pub fn lost(&self) -> String {
        self.encoder.lost()
    }
}

impl Encoder {
    /// Adds a record to the buffer, or counts it as left out. Returns the number of bytes in the buffer.
    fn add(&mut self, record: &Record) -> usize {
        let written = self.converted(record);
        let encoded = written.and_then(|written| {
            let gap = Nanos(written.at.0 - self.before.0);
            (self.writer.record)(&written, gap, &mut self.buffer).map(|()| written)
        });
        match encoded {
            Some(written) => {
                self.before = written.at;
                self.note_losses(record, &written);
            }
            None => self.left_out += 1,
        }
        self.buffer.len()
    }

    fn note_losses(&mut self, record: &Record, written: &Record) {
        for (is_lost, loss) in self.lost.iter_mut().zip(self.writer.loses) {
            *is_lost |= (loss.of)(written);
        }
        let to_pages = self.from == Unit::Bytes && self.format.unit() == Unit::Pages;
        self.has_parts_of_pages |= to_pages
            && !(record.start.is_multiple_of(self.page_bytes)
                && record.length.is_multiple_of(self.page_bytes));
    }

    fn converted(&self, record: &Record) -> Option<Record> {
        let Record { start, length, .. } = *record;
        match (self.from, self.format.unit()) {
            (Unit::Bytes, Unit::Pages) => {
                let first = start / self.page_bytes;
                let length = (start + length).div_ceil(self.page_bytes) - first;
                Some(Record { start: first, length, ..*record })
            }
            (Unit::Pages, Unit::Bytes) => {
                let start = start.checked_mul(self.page_bytes).filter(|start| *start <= FARTHEST)?;
                Some(Record { start, length: length.checked_mul(self.page_bytes)?, ..*record })
            }
            _ => Some(*record),
        }
    }

    fn lost(&self) -> String {
        let of_format = self.writer.loses.iter().zip(&self.lost).filter(|(_, is_lost)| **is_lost);
        let parts = self.has_parts_of_pages.then_some("parts of pages");
        let lost: Vec<&str> = of_format.map(|(loss, _)| loss.what).chain(parts).collect();
        if lost.is_empty() { "nothing".to_owned() } else { lost.join("; ") }
    }
}
