//! Turns text in UTF-16, as spreadsheets and Windows programs write it, into UTF-8 while it is read.
//!
//! The first bytes tell: every second one is zero, in either byte order, with a byte order mark or without one. A
//! binary format does not begin like that.

use std::io::{self, Read};

/// The number of first bytes that tell the encoding.
const HEAD_BYTES: usize = 64;
/// The number of bytes that are decoded at once.
const PIECE_BYTES: usize = 8 << 10;
/// The mark in the place of what is no character.
const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// A source whose text is in UTF-8, or bytes as they are.
pub(super) struct Decoded<R> {
    source: R,
    /// The first bytes, as far as they were not passed on; `None` before the first read.
    head: Option<io::Cursor<Vec<u8>>>,
    /// The error behind the first bytes.
    failed: Option<io::Error>,
    decoder: Option<Decoder>,
}

struct Decoder {
    is_big: bool,
    /// The text that was decoded, from `at` on not passed on yet.
    text: Vec<u8>,
    at: usize,
    /// The first byte of a code unit whose second one was not read yet.
    half: Option<u8>,
    /// The first code unit of a pair.
    high: Option<u16>,
    has_ended: bool,
}

/// Returns whether the first bytes are text in UTF-16 of big endian byte order, or of little endian; `None` for
/// anything else.
fn is_big_endian(head: &[u8]) -> Option<bool> {
    let text = head.strip_prefix(&[0xff, 0xfe]).or_else(|| head.strip_prefix(&[0xfe, 0xff])).unwrap_or(head);
    // A short file may be a binary record, so it needs the mark.
    if text.len() == head.len() && head.len() < HEAD_BYTES || text.len() < 2 {
        return None;
    }
    let is_text = |byte: u8| matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n');
    let is_in_order = |big: usize| {
        let mut pairs = text.chunks_exact(2);
        pairs.all(|pair| pair[1 - big] == 0 && is_text(pair[big]))
    };
    match (is_in_order(0), is_in_order(1)) {
        (true, _) => Some(false),
        (_, true) => Some(true),
        _ => None,
    }
}

impl<R: Read> Decoded<R> {
    pub(super) fn new(source: R) -> Decoded<R> {
        Decoded { source, head: None, failed: None, decoder: None }
    }

    /// Reads the first bytes, which tell the encoding. An error is reported behind the bytes before it.
    fn begin(&mut self) {
        let mut head = Vec::new();
        self.failed = self.source.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head).err();
        self.decoder = is_big_endian(&head).map(|is_big| Decoder {
            is_big,
            text: Vec::new(),
            at: 0,
            half: None,
            high: None,
            has_ended: false,
        });
        self.head = Some(io::Cursor::new(head));
    }

    /// The source of the bytes.
    pub(super) fn source(&self) -> &R {
        &self.source
    }

    fn read_bytes(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let from_head = self.head.as_mut().map_or(Ok(0), |head| head.read(into))?;
        match (from_head, self.failed.take()) {
            (0, Some(error)) => Err(error),
            (0, None) => self.source.read(into),
            (count, failed) => {
                self.failed = failed;
                Ok(count)
            }
        }
    }
}

impl<R: Read> Read for Decoded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.head.is_none() {
            self.begin();
        }
        if self.decoder.is_none() {
            return self.read_bytes(into);
        }
        loop {
            if let Some(decoder) = &mut self.decoder {
                let there = &decoder.text[decoder.at..];
                if !there.is_empty() || decoder.has_ended || into.is_empty() {
                    let count = there.len().min(into.len());
                    into[..count].copy_from_slice(&there[..count]);
                    decoder.at += count;
                    return Ok(count);
                }
            }
            let mut piece = [0; PIECE_BYTES];
            let count = self.read_bytes(&mut piece)?;
            if let Some(decoder) = &mut self.decoder {
                decoder.decode(&piece[..count]);
            }
        }
    }
}

impl Decoder {
    /// Decodes the next bytes; none of them for the end.
    fn decode(&mut self, bytes: &[u8]) {
        self.text.clear();
        self.at = 0;
        if bytes.is_empty() {
            self.has_ended = true;
            if self.half.take().is_some() | self.high.take().is_some() {
                self.push(REPLACEMENT);
            }
        }
        for byte in bytes {
            let Some(first) = self.half.take() else {
                self.half = Some(*byte);
                continue;
            };
            let pair = [first, *byte];
            self.unit(if self.is_big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) });
        }
    }

    fn unit(&mut self, unit: u16) {
        let units = self.high.take().into_iter().chain([unit]);
        for decoded in char::decode_utf16(units) {
            match decoded {
                Ok(letter) => self.push(letter),
                // The second half of the pair is the next unit.
                Err(error) if error.unpaired_surrogate() == unit && unit < 0xdc00 => self.high = Some(unit),
                Err(_) => self.push(REPLACEMENT),
            }
        }
    }

    fn push(&mut self, letter: char) {
        self.text.extend(letter.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(text: &str, is_big: bool, has_mark: bool) -> Vec<u8> {
        let mark = has_mark.then_some(0xfeff);
        let units = mark.into_iter().chain(text.encode_utf16());
        units.flat_map(|unit| if is_big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
    }

    /// Decodes bytes that arrive in pieces of one to three bytes.
    fn decoded(bytes: &[u8]) -> Vec<u8> {
        struct Slow<'a>(&'a [u8], usize);
        impl Read for Slow<'_> {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                self.1 = self.1 % 3 + 1;
                let count = self.1.min(into.len()).min(self.0.len());
                into[..count].copy_from_slice(&self.0[..count]);
                self.0 = &self.0[count..];
                Ok(count)
            }
        }
        let mut text = Vec::new();
        Decoded::new(Slow(bytes, 0)).read_to_end(&mut text).unwrap();
        text
    }

    proptest! {
        /// The rule: text in UTF-16 of both byte orders becomes UTF-8, whatever letters it has behind its beginning.
        #[test]
        fn utf_16_becomes_utf_8(rest in "\\PC{0,200}", is_big in any::<bool>(), has_mark in any::<bool>()) {
            let text = format!("time,operation,offset,length,volume\n{rest}");
            let expected = if has_mark { format!("\u{feff}{text}") } else { text.clone() };
            prop_assert_eq!(decoded(&encoded(&text, is_big, has_mark)), expected.into_bytes());
        }

        /// The rule: other bytes stay as they are.
        #[test]
        fn other_bytes_stay_as_they_are(bytes in prop::collection::vec(1u8.., 0..300)) {
            prop_assert_eq!(decoded(&bytes), bytes);
        }
    }

    /// The rule: half a code unit and half a pair at the end become a mark, and binary records are no text.
    #[test]
    fn damaged_text_and_records_are_told_apart() {
        let mut cut = encoded("a,b,c,d\n1,2,3,4\n", false, true);
        cut.push(7);
        assert_eq!(decoded(&cut), "\u{feff}a,b,c,d\n1,2,3,4\n\u{fffd}".as_bytes());
        let mut cut = encoded("a,b\n", true, true);
        cut.extend([0xd8, 0x3d, 0x00, b'x', 0xdc, 0x00]);
        // The pair is not within the first bytes that must be plain letters.
        let text = encoded(&"0,8,512,R,1.0\n".repeat(9), true, true);
        assert_eq!(
            String::from_utf8(decoded(&[&text[..], &cut[10..]].concat())).unwrap(),
            format!("\u{feff}{}\u{fffd}x\u{fffd}", "0,8,512,R,1.0\n".repeat(9))
        );
        let record = [
            [5, 0, 0, 0],
            [3, 0, 0, 0],
            [0, 0, 0, 0],
            [0, 2, 0, 0],
            [255, 255, 255, 255],
            [255, 255, 255, 255],
        ];
        let records = record.concat().repeat(4);
        assert_eq!(decoded(&records), records);
        assert_eq!(decoded(b"1\0"), b"1\0");
        assert_eq!(decoded(&[0xff, 0xfe]), [0xff, 0xfe]);
    }
}
