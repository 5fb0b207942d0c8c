//! A small NBD client, for what the installed clients never do: half a request, an unaligned request, a request
//! whose answer is never read.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

pub(crate) const READ: u16 = 0;
pub(crate) const WRITE: u16 = 1;
pub(crate) const FLUSH: u16 = 3;
pub(crate) const TRIM: u16 = 4;

/// The error numbers of the protocol.
pub(crate) const EINVAL: u32 = 22;
pub(crate) const ENOSPC: u32 = 28;

/// The time after which a server that does not answer has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

const OPTION_MAGIC: &[u8] = b"IHAVEOPT";
const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;

/// A connection after its handshake, without structured replies.
pub(crate) struct Client {
    pub stream: UnixStream,
    /// The size of the export in bytes.
    pub bytes: u64,
    next_cookie: u64,
}

impl Client {
    /// Connects to the default export at a socket.
    pub(crate) fn new(socket: &Path) -> Client {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).unwrap();
        assert_eq!((&greeting[..8], &greeting[8..16]), (&b"NBDMAGIC"[..], OPTION_MAGIC));
        // Fixed newstyle without padding, then the option EXPORT_NAME with an empty name.
        let export_name = [&3u32.to_be_bytes()[..], OPTION_MAGIC, &1u32.to_be_bytes(), &0u32.to_be_bytes()];
        stream.write_all(&export_name.concat()).unwrap();
        let mut export = [0; 10];
        stream.read_exact(&mut export).unwrap();
        let bytes = u64::from_be_bytes(export[..8].try_into().unwrap());
        Client { stream, bytes, next_cookie: 0 }
    }

    /// Returns a request as it is sent, with the data of a write.
    pub(crate) fn request(&mut self, command: u16, offset: u64, length: u32, data: &[u8]) -> Vec<u8> {
        self.next_cookie += 1;
        let flags = 0u16;
        [
            &REQUEST_MAGIC.to_be_bytes()[..],
            &flags.to_be_bytes(),
            &command.to_be_bytes(),
            &self.next_cookie.to_be_bytes(),
            &offset.to_be_bytes(),
            &length.to_be_bytes(),
            data,
        ]
        .concat()
    }

    /// Sends a request and does not wait for its answer.
    pub(crate) fn send(&mut self, command: u16, offset: u64, length: u32, data: &[u8]) {
        let request = self.request(command, offset, length, data);
        self.stream.write_all(&request).unwrap();
    }

    /// Waits for an answer with `length` bytes of data if it is no error. Returns the data, or the error number.
    /// `None` if the server ends the connection.
    pub(crate) fn answer(&mut self, length: usize) -> Option<Result<Vec<u8>, u32>> {
        let mut header = [0; 16];
        self.stream.read_exact(&mut header).ok()?;
        let number = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().unwrap());
        assert_eq!(number(0), REPLY_MAGIC);
        if number(4) != 0 {
            return Some(Err(number(4)));
        }
        let mut data = vec![0; length];
        self.stream.read_exact(&mut data).ok()?;
        Some(Ok(data))
    }

    pub(crate) fn read(&mut self, offset: u64, length: u32) -> Result<Vec<u8>, u32> {
        self.send(READ, offset, length, &[]);
        self.answer(length as usize).expect("the connection ended")
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), u32> {
        self.send(WRITE, offset, data.len() as u32, data);
        self.answer(0).expect("the connection ended").map(|_| ())
    }

    pub(crate) fn flush(&mut self) {
        self.send(FLUSH, 0, 0, &[]);
        assert_eq!(self.answer(0), Some(Ok(Vec::new())));
    }
}
