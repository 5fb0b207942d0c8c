//! The server's side of the NBD protocol (Network Block Device), without I/O.
//!
//! A [`Session`] is one connection to one [`Export`]. It takes the bytes that a client sent, and gives
//! [`Request`]s to the caller and bytes of replies for the client. It opens no socket, reads no clock and
//! starts no thread. It knows the fixed newstyle handshake, structured replies and the metadata context
//! `base:allocation`; it has no TLS. The protocol is defined in `doc/proto.md` of
//! <https://github.com/NetworkBlockDevice/nbd>.
//!
//! Bytes of a client never cause a panic. The memory of a session does not depend on them, and neither does
//! the number of bytes that the caller must hold, which [`Export::input_at_most`] bounds.

#![cfg_attr(not(test), forbid(clippy::disallowed_methods, clippy::disallowed_types))]
#![forbid(unsafe_code)]

mod numbers;
mod fields;
mod export;
mod request;
mod reply;
mod option;
mod negotiation;
mod session;

pub use export::{BlockSizes, Export, ExportError};
pub use reply::Extent;
pub use request::{Command, Errno, Request};
pub use session::{Reason, Session, Step};
