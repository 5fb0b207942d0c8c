//! Unpacks a trace file. Its first bytes tell how it is packed. A packed file consists of any number of gzip
//! members, zstd frames, xz streams and LZ4 frames in any mixture, with zeros between and behind them.

use flate2::bufread::GzDecoder;
use lz4_flex::frame::FrameDecoder;
use lzma_rust2::XzReader;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

/// The most bytes of a magic number.
const MAGIC_BYTES: usize = 6;
/// The most memory of an xz decoder in KiB, four times that of `xz -9`. A file could ask for more.
const XZ_KIB_AT_MOST: u32 = 256 << 10;
/// The size of the pieces in which a packed file is read.
const BUFFER_BYTES: usize = 1 << 16;

/// The source of a trace, unpacked.
pub(super) enum Unpacked {
    Plain(Box<dyn Read + Send>),
    Packed(Box<Members>),
}

impl Unpacked {
    /// Opens a source, whose first bytes tell its packing. The error says which packing cannot be unpacked.
    pub(super) fn new(mut source: impl Read + Send + 'static) -> io::Result<Unpacked> {
        let mut magic = Vec::new();
        // All bytes of the magic number are read in a loop, because one read may return fewer.
        source.by_ref().take(MAGIC_BYTES as u64).read_to_end(&mut magic)?;
        if let Some(name) = not_unpacked(&magic) {
            return Err(refusal(name));
        }
        let Some(packing) = Packing::of(&magic) else {
            return Ok(Unpacked::Plain(Box::new(io::Cursor::new(magic).chain(source))));
        };
        let inner: Box<dyn Read + Send> = Box::new(source);
        let input = Input {
            head: magic,
            head_at: 0,
            inner: BufReader::with_capacity(BUFFER_BYTES, inner),
            has_ended: false,
        };
        Ok(Unpacked::Packed(Box::new(Members { member: Member::Between(input), packing })))
    }

    /// The name of the packing that is being unpacked; `None` if the file is plain.
    pub(super) fn packing(&self) -> Option<&'static str> {
        match self {
            Unpacked::Plain(_) => None,
            Unpacked::Packed(members) => Some(members.packing.name()),
        }
    }
}

impl Read for Unpacked {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Unpacked::Plain(source) => source.read(into),
            Unpacked::Packed(members) => members.read(into),
        }
    }
}

/// A kind of packing.
#[derive(Clone, Copy, PartialEq)]
enum Packing {
    Gzip,
    Zstd,
    Xz,
    Lz4,
    /// The form of LZ4 from before it had frames. It has no end mark.
    OldLz4,
    /// Data between zstd or LZ4 frames that is not part of the content.
    Skippable,
}

impl Packing {
    fn of(magic: &[u8]) -> Option<Packing> {
        match magic {
            [0x1f, 0x8b, ..] => Some(Packing::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Packing::Zstd),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Packing::Xz),
            [0x04, 0x22, 0x4d, 0x18, ..] => Some(Packing::Lz4),
            [0x02, 0x21, 0x4c, 0x18, ..] => Some(Packing::OldLz4),
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Packing::Skippable),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Packing::Gzip => "gzip",
            Packing::Zstd | Packing::Skippable => "zstd",
            Packing::Xz => "xz",
            Packing::Lz4 | Packing::OldLz4 => "lz4",
        }
    }
}

/// Returns the name of a packing that is known and cannot be unpacked.
fn not_unpacked(magic: &[u8]) -> Option<&'static str> {
    match magic {
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41] | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72] => {
            Some("bzip2")
        }
        [b'P', b'K', 3, 4, ..] => Some("zip"),
        [b'7', b'z', 0xbc, 0xaf, ..] => Some("7z"),
        [0x1f, 0x9d, ..] => Some("compress (.Z)"),
        [b'L', b'Z', b'I', b'P', ..] => Some("lzip"),
        [b'R', b'a', b'r', b'!', ..] => Some("rar"),
        _ => None,
    }
}

fn refusal(name: &str) -> io::Error {
    io::Error::new(
        ErrorKind::Unsupported,
        format!(
            "this is {name} data, which is not unpacked; accepted: gzip, zstd, xz, lz4, or - for the output of a \
                program that unpacks it"
        ),
    )
}

/// The members of a packed file, unpacked one after the other.
pub(super) struct Members {
    member: Member,
    packing: Packing,
}

/// A place in a packed file.
enum Member {
    Gzip(Box<GzDecoder<Input>>),
    Zstd(zstd::Decoder<'static, Input>),
    Xz(Box<XzReader<Input>>),
    Lz4(Box<FrameDecoder<Input>>),
    /// The place is between two members.
    Between(Input),
    /// The place is the end of the file, or an error occurred.
    End,
}

impl Read for Members {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            let read = match &mut self.member {
                Member::Gzip(decoder) => decoder.read(into),
                Member::Zstd(decoder) => decoder.read(into),
                Member::Xz(decoder) => decoder.read(into),
                Member::Lz4(decoder) => decoder.read(into),
                Member::Between(_) => Ok(0),
                Member::End => return Ok(0),
            };
            match read {
                Ok(0) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => return Err(error),
                // After an error, the place in the file is not reliable.
                Err(error) => {
                    self.member = Member::End;
                    return Err(error);
                }
                read => return read,
            }
            // The member ended, so the next one begins.
            let input = match std::mem::replace(&mut self.member, Member::End) {
                Member::Gzip(decoder) => decoder.into_inner(),
                Member::Zstd(decoder) => decoder.finish(),
                Member::Xz(decoder) => decoder.into_inner(),
                Member::Lz4(decoder) => decoder.into_inner(),
                Member::Between(input) => input,
                Member::End => return Ok(0),
            };
            // The decoder of LZ4 reports a file that breaks off as the end of a frame.
            if self.packing == Packing::Lz4 && input.has_ended {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.begin(input)?;
        }
    }
}

impl Members {
    /// Begins the next member, if there is one.
    fn begin(&mut self, mut input: Input) -> io::Result<()> {
        input.skip_zeros()?;
        let magic = input.peek()?;
        if magic.is_empty() {
            return Ok(());
        }
        self.packing = match (Packing::of(magic), not_unpacked(magic)) {
            (Some(packing), _) => packing,
            (None, Some(name)) => return Err(refusal(name)),
            (None, None) => {
                return Err(io::Error::new(ErrorKind::InvalidData, "other data follows its end"));
            }
        };
        self.member = match self.packing {
            Packing::Gzip => Member::Gzip(Box::new(GzDecoder::new(input))),
            Packing::Zstd => Member::Zstd(zstd::Decoder::with_buffer(input)?.single_frame()),
            Packing::Xz => Member::Xz(Box::new(XzReader::new_mem_limit(input, false, XZ_KIB_AT_MOST))),
            Packing::Lz4 | Packing::OldLz4 => Member::Lz4(Box::new(FrameDecoder::new(input))),
            Packing::Skippable => {
                // The magic number is followed by the length of the data, in four bytes.
                let mut header = [0; 8];
                input.read_exact(&mut header)?;
                let [.., a, b, c, d] = header;
                let length = u64::from(u32::from_le_bytes([a, b, c, d]));
                if io::copy(&mut input.by_ref().take(length), &mut io::sink())? < length {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                Member::Between(input)
            }
        };
        Ok(())
    }
}

/// A packed file.
struct Input {
    /// The first bytes, which were read to find a magic number. Those from `head_at` on are next.
    head: Vec<u8>,
    head_at: usize,
    inner: BufReader<Box<dyn Read + Send>>,
    /// Whether a read at the end of the file was tried.
    has_ended: bool,
}

impl Input {
    fn skip_zeros(&mut self) -> io::Result<()> {
        loop {
            let bytes = self.fill_buf()?;
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            if zeros == 0 {
                return Ok(());
            }
            self.consume(zeros);
        }
    }

    /// Returns the next bytes without consuming them: as many as a magic number has, unless the file ends.
    fn peek(&mut self) -> io::Result<&[u8]> {
        let mut head = self.head.split_off(self.head_at.min(self.head.len()));
        let missing = MAGIC_BYTES.saturating_sub(head.len());
        (&mut self.inner).take(missing as u64).read_to_end(&mut head)?;
        (self.head, self.head_at) = (head, 0);
        self.has_ended = false;
        Ok(&self.head)
    }
}

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let count = bytes.len().min(into.len());
        into[..count].copy_from_slice(&bytes[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.head_at < self.head.len() {
            return Ok(&self.head[self.head_at..]);
        }
        let bytes = self.inner.fill_buf()?;
        self.has_ended |= bytes.is_empty();
        Ok(bytes)
    }

    fn consume(&mut self, count: usize) {
        if self.head_at < self.head.len() {
            self.head_at += count;
        } else {
            self.inner.consume(count);
        }
    }
}
