//! Feeds arbitrary bytes, in pieces, to a session of the NBD server, from the beginning or behind a
//! handshake. The session must not panic or loop, must wait for a bounded number of bytes that it does not
//! have, and must do the same for other pieces.
//!
//! Run it with `scripts/fuzz`.

#![no_main]

use fulgurite_nbd::{BlockSizes, Export, Session, Step};
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

/// Bytes before the arbitrary ones: none, client flags, flags with the magic number of an option, and
/// handshakes that end in transmission, without and with structured replies and a metadata context.
const STARTS: [&[u8]; 5] = [
    b"",
    b"\0\0\0\x03",
    b"\0\0\0\x03IHAVEOPT",
    b"\0\0\0\x03IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0",
    b"\0\0\0\x03IHAVEOPT\0\0\0\x08\0\0\0\0\
        IHAVEOPT\0\0\0\x0a\0\0\0\x1b\0\0\0\0\0\0\0\x01\0\0\0\x0fbase:allocation\
        IHAVEOPT\0\0\0\x07\0\0\0\x08\0\0\0\0\0\x01\0\x03",
];

/// Serves bytes that arrive in pieces of one length. Returns the requests as text, the replies, and the end.
fn serve(export: &Arc<Export>, bytes: &[u8], piece: usize) -> (Vec<String>, Vec<u8>) {
    let (mut events, mut replies) = (Vec::new(), Vec::new());
    let mut session = Session::new(Arc::clone(export), &mut replies);
    let (mut from, mut to) = (0, 0);
    while to < bytes.len() {
        to = bytes.len().min(to + piece);
        loop {
            let (used, step) = session.step(&bytes[from..to], &mut replies);
            from += used;
            match step {
                Step::Wait => {
                    assert!(to - from < session.needs() && session.needs() <= export.input_at_most());
                    break;
                }
                Step::Closed(reason) => {
                    events.push(format!("{reason:?}"));
                    return (events, replies);
                }
                Step::Request(request) => events.push(format!("{request:?}")),
                Step::Send => {}
            }
            assert!(used > 0, "a step that does not wait consumes something");
        }
    }
    (events, replies)
}

fuzz_target!(|bytes: &[u8]| {
    let [choice, piece, bytes @ ..] = bytes else { return };
    let start = STARTS[usize::from(*choice) % STARTS.len()];
    let block = BlockSizes { minimum: 512, preferred: 4096, maximum: 65536 };
    let export = Arc::new(Export {
        name: "disk".into(),
        description: "a disk".into(),
        bytes: 1 << 20,
        block: if choice & 64 == 0 { block } else { BlockSizes::default() },
        read_only: choice & 128 != 0,
        multi_conn: false,
    });
    let bytes = [start, bytes].concat();
    let whole = serve(&export, &bytes, bytes.len().max(1));
    assert_eq!(serve(&export, &bytes, usize::from(*piece) + 1), whole);
});
