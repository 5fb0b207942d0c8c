//! A small client for the tests. It encodes messages with the numbers of the protocol's document, and shares
//! none with the crate.

#![allow(dead_code)] // each test file uses a part

use fulgurite_nbd::{BlockSizes, Command, Export, Reason, Request, Session, Step};
use std::sync::Arc;

pub(crate) const EXPORT_NAME: u32 = 1;
pub(crate) const ABORT: u32 = 2;
pub(crate) const LIST: u32 = 3;
pub(crate) const INFO: u32 = 6;
pub(crate) const GO: u32 = 7;
pub(crate) const STRUCTURED: u32 = 8;
pub(crate) const LIST_META: u32 = 9;
pub(crate) const SET_META: u32 = 10;

pub(crate) const ACK: u32 = 1;
pub(crate) const UNSUP: u32 = 0x8000_0001;
pub(crate) const POLICY: u32 = 0x8000_0002;
pub(crate) const INVALID: u32 = 0x8000_0003;
pub(crate) const UNKNOWN: u32 = 0x8000_0006;
pub(crate) const TOO_BIG: u32 = 0x8000_0009;

/// The size of [`export`], in bytes.
pub(crate) const BYTES: u64 = 1 << 30;

/// Returns an export with the name `disk` and block sizes of 512 bytes, 4 KiB and 64 KiB.
pub(crate) fn export() -> Export {
    Export {
        name: "disk".into(),
        description: "a disk".into(),
        bytes: BYTES,
        block: BlockSizes { minimum: 512, preferred: 4096, maximum: 65536 },
        read_only: false,
        multi_conn: false,
    }
}

/// Returns the client's flags: 1 for fixed newstyle, 2 for no zeros.
pub(crate) fn flags(flags: u32) -> Vec<u8> {
    flags.to_be_bytes().to_vec()
}

/// Returns an option.
pub(crate) fn option(number: u32, data: &[u8]) -> Vec<u8> {
    [b"IHAVEOPT", &number.to_be_bytes()[..], &(data.len() as u32).to_be_bytes(), data].concat()
}

/// Returns the data of `NBD_OPT_INFO` and `NBD_OPT_GO`.
pub(crate) fn info(name: &str, items: &[u16]) -> Vec<u8> {
    let mut data = string(name);
    data.extend((items.len() as u16).to_be_bytes());
    items.iter().for_each(|item| data.extend(item.to_be_bytes()));
    data
}

/// Returns the data of the options about metadata contexts.
pub(crate) fn contexts(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut data = string(name);
    data.extend((queries.len() as u32).to_be_bytes());
    queries.iter().for_each(|query| data.extend(string(query)));
    data
}

/// Returns a string behind its length.
pub(crate) fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

/// Returns a request without data.
pub(crate) fn request(flags: u16, command: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    let (flags, command) = (flags.to_be_bytes(), command.to_be_bytes());
    let magic = 0x2560_9513_u32.to_be_bytes();
    [&magic[..], &flags, &command, &cookie.to_be_bytes(), &offset.to_be_bytes(), &length.to_be_bytes()]
        .concat()
}

/// Returns a write with its data.
pub(crate) fn write(flags: u16, cookie: u64, offset: u64, data: &[u8]) -> Vec<u8> {
    [request(flags, 1, cookie, offset, data.len() as u32), data.to_vec()].concat()
}

/// Returns a simple reply without data.
pub(crate) fn simple(error: u32, cookie: u64) -> Vec<u8> {
    [&0x6744_6698_u32.to_be_bytes()[..], &error.to_be_bytes(), &cookie.to_be_bytes()].concat()
}

/// Returns a structured reply of one chunk.
pub(crate) fn chunk(kind: u16, cookie: u64, payload: &[u8]) -> Vec<u8> {
    let (done, kind, length) =
        (1_u16.to_be_bytes(), kind.to_be_bytes(), (payload.len() as u32).to_be_bytes());
    [&0x668e_33ef_u32.to_be_bytes()[..], &done, &kind, &cookie.to_be_bytes(), &length, payload].concat()
}

/// Returns a structured error without a message.
pub(crate) fn error_chunk(error: u32, cookie: u64) -> Vec<u8> {
    chunk(0x8001, cookie, &[&error.to_be_bytes()[..], &[0, 0]].concat())
}

/// A reply to an option: its number, the type and the data.
pub(crate) type OptionReply = (u32, u32, Vec<u8>);

/// Decodes replies to options.
pub(crate) fn option_replies(mut bytes: &[u8]) -> Vec<OptionReply> {
    let mut replies = Vec::new();
    while let Some((header, rest)) = bytes.split_first_chunk::<20>() {
        assert_eq!(header[..8], 0x0003_e889_0455_65a9_u64.to_be_bytes(), "a reply has its magic number");
        let field = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().unwrap());
        let (data, rest) = rest.split_at(field(16) as usize);
        replies.push((field(8), field(12), data.to_vec()));
        bytes = rest;
    }
    assert!(bytes.is_empty(), "the replies end with a whole reply");
    replies
}

/// An event that the caller of a session sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Request(Request<'static>),
    Closed(Reason),
}

/// A connection: the session, the bytes that it has not consumed, and its replies.
pub(crate) struct Connection {
    pub(crate) session: Session,
    /// The bound of `needs`.
    at_most: usize,
    input: Vec<u8>,
    replies: Vec<u8>,
}

impl Connection {
    /// Connects to an export, and checks the greeting.
    pub(crate) fn new(export: Export) -> Connection {
        let at_most = export.input_at_most();
        let mut greeting = Vec::new();
        let session = Session::new(Arc::new(export), &mut greeting);
        assert_eq!(greeting, b"NBDMAGICIHAVEOPT\0\x03", "the greeting offers fixed newstyle and no zeros");
        Connection { session, at_most, input: Vec::new(), replies: Vec::new() }
    }

    /// Connects to a server that refuses all options.
    pub(crate) fn refused(message: &str) -> Connection {
        let mut greeting = Vec::new();
        let session = Session::refusing(message, &mut greeting);
        assert_eq!(greeting, b"NBDMAGICIHAVEOPT\0\x03", "the greeting offers fixed newstyle and no zeros");
        Connection { session, at_most: 1 << 20, input: Vec::new(), replies: Vec::new() }
    }

    /// Connects to an export in fixed newstyle.
    pub(crate) fn fixed(export: Export) -> Connection {
        let mut connection = Connection::new(export);
        assert_eq!(connection.send(&flags(3)), []);
        connection
    }

    /// Connects to an export and enters transmission, with its block sizes if `told`.
    pub(crate) fn transmitting(export: Export, structured: bool, told: bool) -> Connection {
        let mut connection = Connection::fixed(export);
        if structured {
            connection.send(&option(STRUCTURED, b""));
            connection.send(&option(SET_META, &contexts("", &["base:allocation"])));
        }
        let items: &[u16] = if told { &[3] } else { &[] };
        connection.send(&option(GO, &info("", items)));
        connection.replies();
        connection
    }

    /// Sends bytes, and returns the events that follow. Checks that the session consumes all that it can,
    /// waits for a bounded number of bytes, and ends.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Vec<Event> {
        self.input.extend_from_slice(bytes);
        let mut events = Vec::new();
        // A step that does not end the loop consumes a message or appends replies.
        let at_most = self.input.len() + 2;
        for _ in 0..at_most {
            let (used, step) = self.session.step(&self.input, &mut self.replies);
            let event = match step {
                Step::Wait => {
                    self.input.drain(..used);
                    assert!(self.input.len() < self.session.needs(), "the session waits for a byte it has");
                    assert!(self.session.needs() <= self.at_most, "it needs {}", self.session.needs());
                    return events;
                }
                Step::Send => None,
                Step::Request(request) => Some(Event::Request(owned(request))),
                Step::Closed(reason) => {
                    events.push(Event::Closed(reason));
                    assert_eq!(self.session.needs(), 0);
                    return events;
                }
            };
            assert!(used > 0, "every step but the last consumes something");
            self.input.drain(..used);
            events.extend(event);
        }
        panic!("the session does not end after {at_most} steps");
    }

    /// Sends bytes that are one request, and returns its command. None if the session refuses it.
    pub(crate) fn command(&mut self, bytes: &[u8]) -> Option<Command<'static>> {
        match self.send(bytes)[..] {
            [] => None,
            [Event::Request(request)] => Some(request.command),
            ref events => panic!("{events:?}"),
        }
    }

    /// Returns the replies since the last call.
    pub(crate) fn replies(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.replies)
    }

    /// Sends an option, and returns the replies to it.
    pub(crate) fn ask(&mut self, number: u32, data: &[u8]) -> Vec<OptionReply> {
        assert_eq!(self.send(&option(number, data)), []);
        option_replies(&self.replies())
    }

    /// Sends an option, and returns the type of the only reply.
    pub(crate) fn ask_one(&mut self, number: u32, data: &[u8]) -> u32 {
        match self.ask(number, data)[..] {
            [(option, kind, _)] if option == number => kind,
            ref replies => panic!("{replies:?}"),
        }
    }
}

/// Copies the data of a request, which the session borrows from the input.
fn owned(request: Request<'_>) -> Request<'static> {
    let command = match request.command {
        Command::Write { offset, data, durable } => {
            Command::Write { offset, data: data.to_vec().leak(), durable }
        }
        Command::Read { offset, length } => Command::Read { offset, length },
        Command::Flush => Command::Flush,
        Command::Trim { offset, length, durable } => Command::Trim { offset, length, durable },
        Command::WriteZeroes { offset, length, durable, may_trim, fast_only } => {
            Command::WriteZeroes { offset, length, durable, may_trim, fast_only }
        }
        Command::BlockStatus { offset, length, one } => Command::BlockStatus { offset, length, one },
        Command::Cache { offset, length } => Command::Cache { offset, length },
    };
    Request { cookie: request.cookie, command }
}
