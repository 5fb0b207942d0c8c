//! A trace file as lines. The file is unpacked on the way. There is one buffer, and no line may be longer.

use super::error::TraceError;
use super::field::unless_binary;
use flate2::read::MultiGzDecoder;
use std::io::{self, ErrorKind, Read};

/// The longest line that is read, without its end.
const LINE_MAX: usize = 64 << 10;

/// The lines of a file.
pub(super) struct Lines {
    file: String,
    source: Box<dyn Read + Send>,
    /// What the file is packed with; none where it is plain.
    packing: Option<&'static str>,
    buffer: Box<[u8]>,
    /// `buffer[start..end]` is read and not yet handed out.
    start: usize,
    end: usize,
    /// How many lines were handed out.
    number: u64,
    /// What went wrong while looking ahead: reported once the lines before it are handed out.
    failed: Option<io::Error>,
}

impl Lines {
    /// The lines of `source`, unpacked as its first bytes tell; `file` names it in errors.
    pub fn new(file: &str, source: impl Read + Send + 'static) -> Result<Lines, TraceError> {
        let (packing, source) = unpack(source).map_err(|error| TraceError {
            file: file.to_owned(),
            line: None,
            reason: format!("cannot be read: {error}"),
        })?;
        // One byte more than the longest line, for its end.
        let buffer = vec![0; LINE_MAX + 1].into();
        Ok(Lines {
            file: file.to_owned(),
            source,
            packing,
            buffer,
            start: 0,
            end: 0,
            number: 0,
            failed: None,
        })
    }

    /// The bytes ahead, at most one buffer of them, without handing them out.
    pub fn peek(&mut self) -> &[u8] {
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

    /// The next line without surrounding white space; none at the end of the file.
    pub fn next(&mut self) -> Result<Option<&[u8]>, TraceError> {
        let mut length = 0;
        loop {
            let unread = &self.buffer[self.start..self.end];
            // After a refill only the new bytes are searched.
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
        // The last line of a file may have no line end.
        self.start = (line.end + 1).min(self.end);
        Ok(Some(self.buffer[line].trim_ascii()))
    }

    /// The bytes at hand, without handing them out or reading more.
    pub fn at_hand(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Hands out `bytes` of them, which are `lines` lines.
    pub fn pass(&mut self, bytes: usize, lines: usize) {
        self.start += bytes;
        self.number += lines as u64;
    }

    /// The next `size` bytes; none at the end of the file.
    pub fn next_record(&mut self, size: usize) -> Result<Option<&[u8]>, TraceError> {
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

    /// As many whole runs of `size` bytes as are at hand, at most `most`; none at the end of the file.
    /// [`Lines::next_record`] gives what comes after them.
    pub fn next_records(&mut self, size: usize, most: usize) -> Result<Option<&[u8]>, TraceError> {
        // The first record fills the buffer or gives the error.
        if self.next_record(size)?.is_none() {
            return Ok(None);
        }
        let first = self.start - size;
        let more = ((self.end - self.start) / size).min(most.saturating_sub(1));
        self.number += more as u64;
        self.start += more * size;
        Ok(Some(&self.buffer[first..self.start]))
    }

    /// The number of the line that [`Lines::next`] gave last, from one on.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// An error in the file as a whole.
    pub fn error(&self, reason: String) -> TraceError {
        TraceError { file: self.file.clone(), line: None, reason }
    }

    /// An error in this line.
    pub fn error_at(&self, line: u64, reason: String) -> TraceError {
        TraceError { line: Some(line), ..self.error(reason) }
    }

    /// Reads more bytes behind the unread ones, for which there must be room; false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        // The unread bytes move to the front, so that a line is always in one piece.
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
        match self.packing {
            Some(packing) if error.kind() == ErrorKind::UnexpectedEof => {
                format!("the {packing} data breaks off here; the file is not complete")
            }
            Some(packing) => format!("the {packing} data cannot be unpacked from here on: {error}"),
            None => format!("cannot be read from here on: {error}"),
        }
    }
}

type Unpacked = (Option<&'static str>, Box<dyn Read + Send>);

fn unpack(mut source: impl Read + Send + 'static) -> io::Result<Unpacked> {
    let mut magic = Vec::new();
    // One read may return fewer bytes than the magic has.
    source.by_ref().take(4).read_to_end(&mut magic)?;
    let whole = io::Cursor::new(magic.clone()).chain(source);
    Ok(match magic[..] {
        // A file may be several gzip streams in a row; all of them are one trace.
        [0x1f, 0x8b, ..] => (Some("gzip"), Box::new(MultiGzDecoder::new(whole))),
        // A frame, or a frame to be skipped, with which some packers begin.
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => {
            (Some("zstd"), Box::new(zstd::Decoder::new(whole)?))
        }
        _ => (None, Box::new(whole)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every line, then the error if there is one.
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
            ["file, line 1: this is binary data; a trace is text, plain or packed with gzip or zstd"]
        );
    }

    #[test]
    fn looking_ahead_changes_nothing() {
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
