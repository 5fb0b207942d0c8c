//! One connection: the phases of the protocol, and the bytes that are waited for or skipped.
//!
//! A session consumes a message only when all of it is in the input. The data of a refused message are an
//! exception: they are skipped piece by piece, and the reply follows the last piece. So the replies do not
//! depend on how the client's bytes are split.

use crate::export::{Export, OPTION_BYTES_AT_MOST, OPTION_HEADER_BYTES, REQUEST_HEADER_BYTES};
use crate::fields::{Fields, put_u16, put_u64};
use crate::negotiation::{Asked, Negotiation, Outcome};
use crate::numbers::{
    FIXED_NEWSTYLE, GREETING_MAGIC, NO_ZEROES, OPT_EXPORT_NAME, OPTION_MAGIC, STRING_BYTES_AT_MOST,
};
use crate::reply::{Extent, put_data_header, put_error, put_extents, put_simple};
use crate::request::{Errno, Header, Read, Request, Rules};
use std::fmt;
use std::sync::Arc;

/// The growth of the replies that ends a step, in bytes. The replies to one option may exceed it by a few
/// strings.
const REPLIES_PER_STEP: usize = 64 << 10;

/// The next thing that the caller of a session must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Receive more bytes, at least until the input has as many as [`Session::needs`] says.
    Wait,
    /// Send the replies, then continue with the rest of the input. A client that sends many options at once
    /// would otherwise fill the memory with replies.
    Send,
    /// Perform the request and send its reply.
    Request(Request<'a>),
    /// Send the rest of the replies, those of unfinished requests included, and end the connection.
    Closed(Reason),
}

/// The reason why a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The client ended it, as the protocol wants it.
    Client,
    /// The session cannot continue, for a reason in words.
    Fault(&'static str),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Client => f.write_str("the client ended the connection"),
            Reason::Fault(fault) => f.write_str(fault),
        }
    }
}

/// One connection of a client. The caller passes it bytes with [`Session::step`], performs the requests, and
/// appends their replies with the other methods. The replies of several requests may be in any order.
pub struct Session {
    negotiation: Negotiation,
    phase: Phase,
    /// The message whose data are being skipped. It comes before the rest of the phase.
    skipped: Option<Skipped>,
    /// Whether 124 zeros follow the reply to `NBD_OPT_EXPORT_NAME`.
    has_zeros: bool,
    /// Whether replies are structured, which holds from the first request on. Replies may follow the end of
    /// the requests.
    is_structured: bool,
    /// The number of bytes that the input must hold before the next step.
    needs: usize,
}

/// The message that the session expects next.
#[derive(Clone, Copy)]
enum Phase {
    ClientFlags,
    Options {
        /// Whether the client knows fixed newstyle. Without it, the name of the export is the only option.
        is_fixed: bool,
    },
    Requests(Rules),
    Closed(Reason),
}

/// A message whose data are being skipped.
#[derive(Clone, Copy)]
struct Skipped {
    /// The rest of the data, in bytes.
    bytes: u32,
    then: Then,
}

/// The work that follows the skipped data.
#[derive(Clone, Copy)]
enum Then {
    Answer { option: u32, length: u32 },
    Refuse { cookie: u64, errno: Errno },
}

/// The result of looking at the first message of the input.
enum Advance<'a> {
    /// The input must hold this many bytes.
    Needs(usize),
    /// A part of the input was consumed, or the state changed.
    Used(usize),
    /// A request, with its length.
    Request(usize, Request<'a>),
}

impl Session {
    /// Starts a session, and appends the greeting to `out`. The export must pass [`Export::check`].
    pub fn new(export: Arc<Export>, out: &mut Vec<u8>) -> Session {
        let negotiation = Negotiation::Serving { export, is_structured: false, has_allocation: false };
        Session::start(negotiation, out)
    }

    /// Starts a session that refuses every option with `message`, and appends the greeting to `out`. A
    /// server uses it for a connection that it cannot serve, so that the client learns why. A message of more
    /// than 4,096 bytes is cut.
    pub fn refusing(message: &str, out: &mut Vec<u8>) -> Session {
        let end = (0..=STRING_BYTES_AT_MOST).rev().find(|&end| message.is_char_boundary(end)).unwrap_or(0);
        Session::start(Negotiation::Refusing(message.get(..end).unwrap_or(message).to_owned()), out)
    }

    fn start(negotiation: Negotiation, out: &mut Vec<u8>) -> Session {
        put_u64(out, GREETING_MAGIC);
        put_u64(out, OPTION_MAGIC);
        put_u16(out, FIXED_NEWSTYLE | NO_ZEROES);
        Session {
            negotiation,
            phase: Phase::ClientFlags,
            skipped: None,
            has_zeros: true,
            is_structured: false,
            needs: 4,
        }
    }

    /// Whether the handshake has ended, so that requests may follow at any time.
    pub fn is_serving(&self) -> bool {
        matches!(self.phase, Phase::Requests(_))
    }

    /// Returns how many bytes the input must hold before the next call of [`Session::step`] can do more,
    /// after a call that returned [`Step::Wait`]. It is at most [`Export::input_at_most`].
    pub fn needs(&self) -> usize {
        self.needs
    }

    /// Takes messages from the beginning of `input` until the caller has something to do. Appends the
    /// replies of the handshake and of refused requests to `out`.
    ///
    /// Returns how many bytes it consumed, and the next thing to do. The next input must begin behind those
    /// bytes. The caller calls this again with the rest of the input until it returns [`Step::Wait`].
    pub fn step<'a>(&mut self, input: &'a [u8], out: &mut Vec<u8>) -> (usize, Step<'a>) {
        let mut used = 0;
        let replies = out.len();
        loop {
            if out.len() - replies >= REPLIES_PER_STEP {
                return (used, Step::Send);
            }
            if let Phase::Closed(reason) = self.phase {
                self.needs = 0;
                return (used, Step::Closed(reason));
            }
            match self.advance(&input[used..], out) {
                Advance::Used(bytes) => used += bytes,
                Advance::Request(bytes, request) => return (used + bytes, Step::Request(request)),
                Advance::Needs(bytes) => {
                    self.needs = bytes;
                    return (used, Step::Wait);
                }
            }
        }
    }

    fn advance<'a>(&mut self, input: &'a [u8], out: &mut Vec<u8>) -> Advance<'a> {
        if let Some(skipped) = self.skipped {
            return self.skip(skipped, input.len(), out);
        }
        match self.phase {
            Phase::ClientFlags => self.client_flags(input),
            Phase::Options { is_fixed } => self.option(is_fixed, input, out),
            Phase::Requests(rules) => self.request(rules, input),
            Phase::Closed(_) => Advance::Needs(0),
        }
    }

    fn fault(&mut self, fault: &'static str) -> Advance<'static> {
        self.phase = Phase::Closed(Reason::Fault(fault));
        Advance::Used(0)
    }

    /// Skips data of a message, and acts when all are skipped.
    fn skip(&mut self, skipped: Skipped, held: usize, out: &mut Vec<u8>) -> Advance<'static> {
        if skipped.bytes > 0 && held == 0 {
            return Advance::Needs(1);
        }
        let bytes = skipped.bytes.min(u32::try_from(held).unwrap_or(u32::MAX));
        let left = Skipped { bytes: skipped.bytes - bytes, ..skipped };
        self.skipped = (left.bytes > 0).then_some(left);
        if self.skipped.is_none() {
            match skipped.then {
                Then::Answer { option, length } => self.answer(Asked { option, length, data: None }, out),
                Then::Refuse { cookie, errno } => self.reply(cookie, Err(errno), out),
            }
        }
        Advance::Used(bytes as usize)
    }

    fn client_flags(&mut self, input: &[u8]) -> Advance<'static> {
        let Some(flags) = Fields(input).u32() else { return Advance::Needs(4) };
        if flags & !u32::from(FIXED_NEWSTYLE | NO_ZEROES) != 0 {
            return self.fault("the client has flags that the server did not offer");
        }
        self.has_zeros = flags & u32::from(NO_ZEROES) == 0;
        self.phase = Phase::Options { is_fixed: flags & u32::from(FIXED_NEWSTYLE) != 0 };
        Advance::Used(4)
    }

    fn option(&mut self, is_fixed: bool, input: &[u8], out: &mut Vec<u8>) -> Advance<'static> {
        let mut fields = Fields(input);
        let (Some(magic), Some(option), Some(length)) = (fields.u64(), fields.u32(), fields.u32()) else {
            return Advance::Needs(OPTION_HEADER_BYTES);
        };
        let bytes = length as usize;
        if magic != OPTION_MAGIC {
            return self.fault("the client sends something other than an option");
        }
        if !is_fixed && option != OPT_EXPORT_NAME {
            return self.fault("the client sends an option for which it has not set its flag");
        }
        if option == OPT_EXPORT_NAME && bytes > STRING_BYTES_AT_MOST {
            return self.fault("the name of the export is too long");
        }
        if bytes > OPTION_BYTES_AT_MOST {
            self.skipped = Some(Skipped { bytes: length, then: Then::Answer { option, length } });
            return Advance::Used(OPTION_HEADER_BYTES);
        }
        let Some(data) = fields.bytes(bytes) else { return Advance::Needs(OPTION_HEADER_BYTES + bytes) };
        self.answer(Asked { option, length, data: Some(data) }, out);
        Advance::Used(OPTION_HEADER_BYTES + bytes)
    }

    fn answer(&mut self, asked: Asked<'_>, out: &mut Vec<u8>) {
        self.phase = match self.negotiation.answer(asked, self.has_zeros, out) {
            Outcome::Continue => self.phase,
            Outcome::Transmit(rules) => {
                self.is_structured = rules.is_structured();
                Phase::Requests(rules)
            }
            Outcome::Abort => Phase::Closed(Reason::Client),
            Outcome::Fault(fault) => Phase::Closed(Reason::Fault(fault)),
        };
    }

    #[inline]
    fn request<'a>(&mut self, rules: Rules, input: &'a [u8]) -> Advance<'a> {
        let header = match Header::read(input) {
            Read::Incomplete => return Advance::Needs(REQUEST_HEADER_BYTES),
            Read::Malformed => return self.fault("the client sends something other than a request"),
            Read::Header(header) if header.is_disconnect() => {
                self.phase = Phase::Closed(Reason::Client);
                return Advance::Used(REQUEST_HEADER_BYTES);
            }
            Read::Header(header) => header,
        };
        let (cookie, bytes) = (header.cookie, header.data_bytes());
        match rules.check(header) {
            Ok(checked) => {
                let end = REQUEST_HEADER_BYTES + bytes as usize;
                match input.get(REQUEST_HEADER_BYTES..end) {
                    Some(data) => Advance::Request(end, checked.request(data)),
                    None => Advance::Needs(end),
                }
            }
            Err(errno) => {
                self.skipped = Some(Skipped { bytes, then: Then::Refuse { cookie, errno } });
                Advance::Used(REQUEST_HEADER_BYTES)
            }
        }
    }

    /// Appends the reply to a request. A successful read or block status has another reply, with data.
    #[inline]
    pub fn reply(&self, cookie: u64, result: Result<(), Errno>, out: &mut Vec<u8>) {
        match result {
            Ok(()) => put_simple(out, cookie, 0),
            Err(errno) => put_error(out, self.is_structured, cookie, errno),
        }
    }

    /// Appends the header of the reply to a successful read of `length` bytes from `offset` on, which must be
    /// those of the request. The caller then appends the data, so it must have them all: behind this header,
    /// the protocol knows no error.
    #[inline]
    pub fn begin_read_reply(&self, cookie: u64, offset: u64, length: u32, out: &mut Vec<u8>) {
        if self.is_structured {
            put_data_header(out, cookie, offset, length);
        } else {
            put_simple(out, cookie, 0);
        }
    }

    /// Appends the reply to a successful block status. The extents follow each other from the offset of the
    /// request on. All but the last must be within its range; they may cover less of it. The reply has the
    /// first 2^20 of them. Without any, it is [`Errno::Io`].
    pub fn reply_block_status(&self, cookie: u64, extents: &[Extent], out: &mut Vec<u8>) {
        if extents.is_empty() {
            self.reply(cookie, Err(Errno::Io), out);
        } else {
            put_extents(out, cookie, extents);
        }
    }
}
