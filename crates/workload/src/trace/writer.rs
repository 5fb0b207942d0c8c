//! Writes traces in every format that can be written record by record.

use super::format::Format;
use super::record::{Record, Unit};
use super::row::{Loss, Writer};
use super::space::{AddressSpace, REGION_BYTES};
use fulgurite_base::{Nanos, SpecError};
use rustc_hash::FxHashSet;
use std::io::{self, Write};
use std::sync::Arc;

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
    /// The kinds of records that were left out.
    left_out_kinds: Vec<&'static str>,
    /// The names of the volumes, as far as they were given. A volume's number is one more than its index.
    names: Vec<Arc<[u8]>>,
    /// The text of each volume in the new trace, by its number; `None` before its first request.
    volumes: Vec<Option<String>>,
    /// The texts in `volumes`, so that no two volumes get the same one.
    used: FxHashSet<String>,
    /// The addresses of the volumes in a format without volumes.
    space: AddressSpace,
    has_several_volumes: bool,
    is_renamed: bool,
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
            left_out_kinds: Vec::new(),
            names: Vec::new(),
            volumes: Vec::new(),
            used: FxHashSet::default(),
            space: AddressSpace::new(match (from, format.unit()) {
                (Unit::Bytes, Unit::Pages) => REGION_BYTES.div_ceil(page_bytes),
                _ => REGION_BYTES,
            }),
            has_several_volumes: false,
            is_renamed: false,
        };
        Ok(TraceWriter { out, encoder })
    }

    /// Gives names to further volumes, in the order of their numbers. A volume keeps its name if the format can
    /// hold it, and gets a number otherwise.
    pub fn add_volumes(&mut self, names: &[Arc<[u8]>]) {
        self.encoder.names.extend_from_slice(names);
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
        self.encoder.close();
        self.spill()?;
        self.out.flush()?;
        Ok((self.out, self.encoder.left_out))
    }

    /// Returns the kinds of records and the properties of the others so far that the format could not hold, in
    /// words; `nothing` if there are none.
    pub fn lost(&self) -> String {
        self.encoder.lost()
    }
}

impl Encoder {
    /// Adds a record to the buffer, or counts it as left out. Returns the number of bytes in the buffer.
    fn add(&mut self, record: &Record) -> usize {
        if let Err(kind) = self.encode(record) {
            self.left_out += 1;
            if !self.left_out_kinds.contains(&kind) {
                self.left_out_kinds.push(kind);
            }
        }
        self.buffer.len()
    }

    /// Adds a record to the buffer. The error is the kind of records that the format cannot hold.
    fn encode(&mut self, record: &Record) -> Result<(), &'static str> {
        let written = self.converted(record)?;
        let gap = Nanos(written.at.0 - self.before.0);
        if self.writer.volumes.is_some() {
            let volume = self.text_of(written.volume, written.at);
            let text = self.volumes[volume].as_deref().unwrap_or_default();
            (self.writer.record)(&written, text, gap, &mut self.buffer)?;
        } else {
            let units = written.start..written.start + written.length;
            let Encoder { space, writer, buffer, .. } = self;
            let (mut outcome, mut gap) = (Ok(()), gap);
            let placed = space.place(written.volume, units, |units| {
                let part = Record { start: units.start, length: units.end - units.start, ..written };
                outcome = outcome.and((writer.record)(&part, "", gap, buffer));
                // The parts of a record follow each other without a wait.
                gap = Nanos::ZERO;
            });
            placed.map_err(|_| "volumes without room in 64 bits of addresses").and(outcome)?;
        }
        self.before = written.at;
        self.has_several_volumes |= written.volume > 1;
        self.note_losses(record, &written);
        Ok(())
    }

    /// Returns the index of the text of a volume in `volumes`. The first request to a volume decides its text.
    fn text_of(&mut self, volume: u32, at: Nanos) -> usize {
        let index = volume as usize;
        if self.volumes.len() <= index {
            self.volumes.resize(index + 1, None);
        }
        if let (None, Some(column)) = (&self.volumes[index], &self.writer.volumes) {
            let before = index.saturating_sub(1);
            let name = self.names.get(before).filter(|_| volume > 0);
            let named = name.and_then(|name| (column.named)(std::str::from_utf8(name).ok()?));
            let named = named.filter(|text| !self.used.contains(text));
            self.is_renamed |= name.is_some() && named.is_none();
            let text = named.unwrap_or_else(|| {
                let mut numbered = (before as u64..).map(column.numbered);
                numbered.find(|text| !self.used.contains(text)).unwrap_or_default()
            });
            (column.open)(&text, at, &mut self.buffer);
            self.used.insert(text.clone());
            self.volumes[index] = Some(text);
        }
        index
    }

    /// Adds what follows the last record.
    fn close(&mut self) {
        if let Some(column) = &self.writer.volumes {
            self.volumes.iter().flatten().for_each(|text| (column.close)(text, &mut self.buffer));
        }
        self.buffer.extend(self.writer.footer.as_bytes());
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

    fn converted(&self, record: &Record) -> Result<Record, &'static str> {
        const TOO_FAR: &str = "requests beyond 2^62 bytes";
        let Record { start, length, .. } = *record;
        match (self.from, self.format.unit()) {
            (Unit::Bytes, Unit::Pages) => {
                let first = start / self.page_bytes;
                let length = (start + length).div_ceil(self.page_bytes) - first;
                Ok(Record { start: first, length, ..*record })
            }
            (Unit::Pages, Unit::Bytes) => {
                let start =
                    start.checked_mul(self.page_bytes).filter(|start| *start <= FARTHEST).ok_or(TOO_FAR)?;
                let length = length.checked_mul(self.page_bytes).ok_or(TOO_FAR)?;
                start.checked_add(length).ok_or(TOO_FAR)?;
                Ok(Record { start, length, ..*record })
            }
            _ => Ok(*record),
        }
    }

    fn lost(&self) -> String {
        let of_format = self.writer.loses.iter().zip(&self.lost).filter(|(_, is_lost)| **is_lost);
        let parts = self.has_parts_of_pages.then_some("parts of pages");
        let volumes = match self.writer.volumes {
            None => Some(Loss::VOLUMES.what),
            Some(_) => self.is_renamed.then_some("names of volumes"),
        };
        // The name of a single volume distinguishes nothing.
        let volumes = volumes.filter(|_| self.has_several_volumes);
        let kinds = self.left_out_kinds.iter().copied();
        let lost: Vec<&str> =
            kinds.chain(of_format.map(|(loss, _)| loss.what)).chain(parts).chain(volumes).collect();
        if lost.is_empty() { "nothing".to_owned() } else { lost.join("; ") }
    }
}
