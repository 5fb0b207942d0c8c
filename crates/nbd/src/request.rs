//! The requests of a client: how they are encoded, and which the session refuses before the caller sees them.
//!
//! Each request that passes [`Rules::check`] lies within the export, is aligned to the minimum block
//! size, has at least one byte if it has a range, and writes only to a writable export.

use crate::export::{Export, REQUEST_HEADER_BYTES};
use crate::fields::Fields;

/// The magic number of each request.
const REQUEST_MAGIC: u32 = 0x2560_9513;

/// Command flag: the effect is durable before the reply. It is valid for every command.
const FUA: u16 = 1 << 0;
/// Command flag of `NBD_CMD_WRITE_ZEROES`: leave no hole.
const NO_HOLE: u16 = 1 << 1;
/// Command flag of `NBD_CMD_READ`: send the data in one chunk, which a session always does.
const DF: u16 = 1 << 2;
/// Command flag of `NBD_CMD_BLOCK_STATUS`: send one extent.
const REQ_ONE: u16 = 1 << 3;
/// Command flag of `NBD_CMD_WRITE_ZEROES`: fail rather than take as long as a write.
const FAST_ZERO: u16 = 1 << 4;

/// The reason for which a request fails, with the number that the protocol gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errno {
    /// The export is read-only.
    Perm = 1,
    /// The drive failed.
    Io = 5,
    /// There is no memory for the request.
    NoMemory = 12,
    /// The request is not valid.
    Invalid = 22,
    /// The export is full, or a write lies behind its end.
    NoSpace = 28,
    /// The request is too long.
    Overflow = 75,
    /// Zeros cannot be written faster than other data.
    NotSupported = 95,
    /// The server is shutting down.
    Shutdown = 108,
}

/// A valid request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The client's number for the request. The reply must have the same.
    pub cookie: u64,
    /// The work that the client asks for.
    pub command: Command<'a>,
}

/// The work of a request. Offsets and lengths are in bytes; ranges lie within the export and are not empty.
///
/// A `durable` command must be on stable storage before its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the doc comment of the enum describes the fields that all commands share
pub enum Command<'a> {
    /// Read a range.
    Read { offset: u64, length: u32 },
    /// Write `data` at `offset`.
    Write { offset: u64, data: &'a [u8], durable: bool },
    /// Make all writes durable that were replied to.
    Flush,
    /// Discard a range, whose contents are undefined from then on.
    Trim { offset: u64, length: u32, durable: bool },
    /// Fill a range with zeros. Only if `may_trim`, the range may lose its space. If `fast_only`, the command
    /// must fail with [`Errno::NotSupported`] unless it is faster than a write.
    WriteZeroes { offset: u64, length: u32, durable: bool, may_trim: bool, fast_only: bool },
    /// List the extents from `offset` on. If `one`, the reply must have exactly one extent, which is not
    /// longer than `length`.
    BlockStatus { offset: u64, length: u32, one: bool },
    /// Prepare for reads of a range.
    Cache { offset: u64, length: u32 },
}

/// The kinds of commands, without their parameters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Flush,
    Trim,
    Cache,
    WriteZeroes,
    BlockStatus,
}

/// A request without its data.
pub(crate) struct Header {
    flags: u16,
    /// The number of the command. Not every number has a meaning.
    command: u16,
    pub(crate) cookie: u64,
    offset: u64,
    length: u32,
}

/// A request without its data that passed the checks of [`Rules`].
pub(crate) struct Checked {
    kind: Kind,
    header: Header,
}

/// The result of reading a request's header.
pub(crate) enum Read {
    /// The input ends before the header does.
    Incomplete,
    /// The input is not a request.
    Malformed,
    /// The header.
    Header(Header),
}

impl Header {
    /// Reads a header from the beginning of `input`.
    #[inline]
    pub(crate) fn read(input: &[u8]) -> Read {
        let Some(header) = input.first_chunk::<REQUEST_HEADER_BYTES>() else { return Read::Incomplete };
        let mut fields = Fields(header);
        match Header::fields(&mut fields) {
            Some(header) => Read::Header(header),
            None => Read::Malformed,
        }
    }

    #[inline]
    fn fields(fields: &mut Fields<'_>) -> Option<Header> {
        if fields.u32()? != REQUEST_MAGIC {
            return None;
        }
        let (flags, command) = (fields.u16()?, fields.u16()?);
        Some(Header { flags, command, cookie: fields.u64()?, offset: fields.u64()?, length: fields.u32()? })
    }

    fn kind(&self) -> Option<Kind> {
        match self.command {
            0 => Some(Kind::Read),
            1 => Some(Kind::Write),
            3 => Some(Kind::Flush),
            4 => Some(Kind::Trim),
            5 => Some(Kind::Cache),
            6 => Some(Kind::WriteZeroes),
            7 => Some(Kind::BlockStatus),
            _ => None,
        }
    }

    /// Whether the client ends the connection.
    pub(crate) fn is_disconnect(&self) -> bool {
        self.command == 2
    }

    /// Returns the length of the data that follow the header, in bytes.
    pub(crate) fn data_bytes(&self) -> u32 {
        if self.kind() == Some(Kind::Write) { self.length } else { 0 }
    }
}

impl Checked {
    /// Returns the request. `data` are the bytes that follow the header.
    #[inline]
    pub(crate) fn request<'a>(&self, data: &'a [u8]) -> Request<'a> {
        let &Header { flags, cookie, offset, length, .. } = &self.header;
        let durable = flags & FUA != 0;
        let command = match self.kind {
            Kind::Read => Command::Read { offset, length },
            Kind::Write => Command::Write { offset, data, durable },
            Kind::Flush => Command::Flush,
            Kind::Trim => Command::Trim { offset, length, durable },
            Kind::Cache => Command::Cache { offset, length },
            Kind::WriteZeroes => {
                let (may_trim, fast_only) = (flags & NO_HOLE == 0, flags & FAST_ZERO != 0);
                Command::WriteZeroes { offset, length, durable, may_trim, fast_only }
            }
            Kind::BlockStatus => Command::BlockStatus { offset, length, one: flags & REQ_ONE != 0 },
        };
        Request { cookie, command }
    }
}

/// The rules for the requests of one connection: those of the export, and those that were negotiated.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    /// The size of the export, in bytes.
    bytes: u64,
    /// The bits that must be zero in offsets and lengths.
    unaligned: u64,
    /// The most data of one read or write, in bytes.
    payload_at_most: u32,
    read_only: bool,
    /// Whether the client understands structured replies.
    is_structured: bool,
    /// Whether the client selected the context `base:allocation`.
    has_allocation: bool,
}

impl Rules {
    /// Returns the rules for a client. It `is_told` the block sizes if it asked for them.
    pub(crate) fn new(export: &Export, is_structured: bool, has_allocation: bool, is_told: bool) -> Rules {
        Rules {
            bytes: export.bytes,
            unaligned: u64::from(export.block.minimum.wrapping_sub(1)),
            payload_at_most: export.payload_at_most(is_told),
            read_only: export.read_only,
            is_structured,
            has_allocation,
        }
    }

    /// Whether the client understands structured replies.
    pub(crate) fn is_structured(&self) -> bool {
        self.is_structured
    }

    /// Checks a request.
    ///
    /// # Errors
    /// The number with which the session must refuse the request.
    #[inline]
    pub(crate) fn check(&self, header: Header) -> Result<Checked, Errno> {
        let kind = header.kind().ok_or(Errno::Invalid)?;
        if header.flags & !self.flags(kind) != 0 {
            return Err(Errno::Invalid);
        }
        match kind {
            Kind::Flush if header.offset != 0 || header.length != 0 => return Err(Errno::Invalid),
            Kind::Flush => return Ok(Checked { kind, header }),
            Kind::Write | Kind::Trim | Kind::WriteZeroes if self.read_only => return Err(Errno::Perm),
            Kind::BlockStatus if !self.has_allocation => return Err(Errno::Invalid),
            _ => {}
        }
        self.check_range(kind, &header)?;
        Ok(Checked { kind, header })
    }

    /// Returns the flags that a command may have.
    fn flags(&self, kind: Kind) -> u16 {
        match kind {
            Kind::Read if self.is_structured => FUA | DF,
            Kind::WriteZeroes => FUA | NO_HOLE | FAST_ZERO,
            Kind::BlockStatus => FUA | REQ_ONE,
            _ => FUA,
        }
    }

    fn check_range(&self, kind: Kind, &Header { offset, length, .. }: &Header) -> Result<(), Errno> {
        let bytes = u64::from(length);
        if bytes == 0 || (offset | bytes) & self.unaligned != 0 {
            return Err(Errno::Invalid);
        }
        if offset.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            let is_write = matches!(kind, Kind::Write | Kind::WriteZeroes);
            return Err(if is_write { Errno::NoSpace } else { Errno::Invalid });
        }
        match kind {
            // Only a client with structured replies expects to hear that a read is too long.
            Kind::Read if length > self.payload_at_most && self.is_structured => Err(Errno::Overflow),
            Kind::Read | Kind::Write if length > self.payload_at_most => Err(Errno::Invalid),
            _ => Ok(()),
        }
    }
}
