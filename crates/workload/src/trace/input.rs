//! Reads a trace file as lines or binary records. The file passes through one buffer, so no
//! line may be longer than this buffer.

use super::error::TraceError;
use super::field::unless_binary;
use super::unpack::Unpacked;
use super::utf16::Decoded;
use std::io::{self, ErrorKind, Read};

/// The length of the longest accepted line, in bytes, without its line end.
const LINE_MAX: usize = 64 << 10;

/// A reader of the lines or binary records of a trace file.
pub(super) struct Lines {
    file: String,
    source: Decoded<Unpacked>,
    buffer: Box<[u8]>,
    /// `buffer[start..end]` holds the bytes that were read from the file and not returned yet.
    start: usize,
    end: usize,
    /// The number of lines or records that were returned so far.
    number: u64,
    /// An error that occurred while peeking. It is reported after the lines before it.
    failed: Option<io::Error>,
}

impl Lines {
    /// Creates a reader of `source`, whose first bytes tell its compression. `file` is the file's name in
    /// error messages.
    pub(crate) fn new(file: &str, source: impl Read + Send + 'static) -> Result<Lines, TraceError> {
        let source = Unpacked::new(source).map(Decoded::new).map_err(|error| TraceError {
            file: file.to_owned(),
            line: None,
            reason: match error.kind() {
                ErrorKind::Unsupported => error.to_string(),
                _ => format!("cannot be read: {error}"),
            },
        })?;
        // The buffer has one byte more than the longest line, for the line end.
        let buffer = vec![0; LINE_MAX + 1].into();
        Ok(Lines { file: file.to_owned(), source, buffer, start: 0, end: 0, number: 0, failed: None })
    }

    /// Returns the next bytes without consuming them. They fill the buffer unless the file ends or fails
    /// before.
    pub(crate) fn peek(&mut self) -> &[u8] {
        while self.end < self.buffer.len() {
            match self.fill() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
        }
        &self.buffer[self.start..self.end]
    }

    /// Returns the next line without surrounding white space; `None` at the end of the file.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, TraceError> {
        let mut length = 0;
        loop {
            let unread = &self.buffer[self.start..self.end];
            // The bytes before `length` contain no line end, so after a refill only the new bytes are
            // searched.
            if let Some(at) = memchr::memchr(b'\n', &unread[length..]) {
                length += at;
                break;
            }
            length = unread.len();
            if length == self.buffer.len() {
                let reason = format!("longer than {LINE_MAX} bytes, the most that a line may have");
                return Err(self.error_at(self.number + 1, unless_binary(&self.buffer, reason)));
            }
            match self.fill() {
                Ok(true) => {}
                Ok(false) if length == 0 => return Ok(None),
                Ok(false) => break,
                Err(error) => return Err(self.error_at(self.number + 1, self.explain(&error))),
            }
        }
        self.number += 1;
        let line = self.start..self.start + length;
        // The last line of a file may have no line end, so the position is limited to the end of the bytes.
        self.start = (line.end + 1).min(self.end);
        Ok(Some(self.buffer[line].trim_ascii()))
    }

    /// Returns the bytes in the buffer, without consuming them or reading more.
    pub(crate) fn at_hand(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Consumes `bytes` bytes of the buffer, which are `lines` whole lines.
    pub(crate) fn pass(&mut self, bytes: usize, lines: usize) {
        self.start += bytes;
        self.number += lines as u64;
    }

    /// Returns the next `size` bytes as a record; `None` at the end of the file.
    pub(crate) fn next_record(&mut self, size: usize) -> Result<Option<&[u8]>, TraceError> {
        while self.end - self.start < size {
            match self.fill() {
                Ok(true) => {}
                Ok(false) if self.end == self.start => return Ok(None),
                Ok(false) => {
                    let reason = format!("the last record has {} of {size} bytes", self.end - self.start);
                    return Err(self.error(reason));
                }
                Err(error) => return Err(self.error(self.explain(&error))),
            }
        }
        self.number += 1;
        self.start += size;
        Ok(Some(&self.buffer[self.start - size..self.start]))
    }

    /// Passes over `bytes` bytes, which belong to the last record.
    pub(crate) fn pass_data(&mut self, bytes: usize) -> Result<(), TraceError> {
        let mut left = bytes;
        loop {
            let there = left.min(self.end - self.start);
            (self.start, left) = (self.start + there, left - there);
            if left == 0 {
                return Ok(());
            }
            match self.fill() {
                Ok(true) => {}
                Ok(false) => {
                    let reason = format!("the data behind the last record end {left} bytes early");
                    return Err(self.error(reason));
                }
                Err(error) => return Err(self.error(self.explain(&error))),
            }
        }
    }

    /// Returns as many whole records of `size` bytes as the buffer holds, at most `most`; `None` at the end
    /// of the file.
    pub(crate) fn next_records(&mut self, size: usize, most: usize) -> Result<Option<&[u8]>, TraceError> {
        // If the buffer has no whole record, reading the first record fills it or fails.
        if self.next_record(size)?.is_none() {
            return Ok(None);
        }
        let first = self.start - size;
        let more = ((self.end - self.start) / size).min(most.saturating_sub(1));
        self.number += more as u64;
        self.start += more * size;
        Ok(Some(&self.buffer[first..self.start]))
    }

    /// Returns the number of the last returned line or record, counted from one.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Creates an error that concerns the whole file.
    pub(crate) fn error(&self, reason: String) -> TraceError {
        TraceError { file: self.file.clone(), line: None, reason }
    }

    /// Creates an error that concerns this line.
    pub(crate) fn error_at(&self, line: u64, reason: String) -> TraceError {
        TraceError { line: Some(line), ..self.error(reason) }
    }

    /// Reads more bytes behind the unconsumed ones, for which the buffer must have room. Returns false at the
    /// end of the file.
    fn fill(&mut self) -> io::Result<bool> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        // The unconsumed bytes are moved to the front of the buffer, so that a line is always contiguous.
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => {
                    let count = result?;
                    self.end += count;
                    return Ok(count > 0);
                }
            }
        }
    }

    fn explain(&self, error: &io::Error) -> String {
        match self.source.source().packing() {
            Some(packing) if error.kind() == ErrorKind::UnexpectedEof => {
                format!("the {packing} data breaks off here; the file is not complete")
            }
            Some(packing) => format!("the {packing} data cannot be unpacked from here on: {error}"),
            None => format!("cannot be read from here on: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all lines, followed by the text of the error if there is one.
    fn lines(source: &[u8]) -> Vec<String> {
        let mut lines = Lines::new("file", io::Cursor::new(source.to_vec())).unwrap();
        let mut all = Vec::new();
        loop {
            match lines.next() {
                Ok(Some(line)) => all.push(String::from_utf8_lossy(line).into_owned()),
                Ok(None) => return all,
                Err(error) => {
                    all.push(error.to_string());
                    return all;
                }
            }
        }
    }

    #[test]
    fn lines_end_in_any_way() {
        assert_eq!(lines(b""), [""; 0]);
        assert_eq!(lines(b"a\r\n\n b \nc"), ["a", "", "b", "c"]);
        assert_eq!(lines(b"\n"), [""]);
    }

    #[test]
    fn a_line_has_a_limit() {
        let mut text = vec![b'x'; LINE_MAX];
        text.extend(b"\ny\n");
        assert_eq!(lines(&text).iter().map(String::len).collect::<Vec<_>>(), [LINE_MAX, 1]);
        text.splice(0..0, *b"1\n2");
        assert_eq!(
            lines(&text)[1..],
            ["file, line 2: longer than 65536 bytes, the most that a line may have"]
        );
        assert_eq!(
            lines(&[0; 70_000]),
            [
                "file, line 1: this is binary data; a trace is text, plain or packed with gzip, zstd, xz or lz4"
            ]
        );
    }

    #[test]
    fn peeking_consumes_nothing() {
        let text = "0123456789\n".repeat(20_000);
        let mut seen = Lines::new("file", io::Cursor::new(text.clone())).unwrap();
        assert_eq!(seen.peek().len(), LINE_MAX + 1);
        let mut count = 0;
        while let Some(line) = seen.next().unwrap() {
            assert_eq!(line, b"0123456789");
            count += 1;
        }
        assert_eq!(count, 20_000);
    }
}
