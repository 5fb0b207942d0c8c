//! Property tests: how the client's bytes are split changes nothing, and arbitrary bytes do no harm. The
//! client of the tests checks at each step that the session consumes all that it can, waits for a bounded
//! number of bytes, and does not loop.

mod client;

use client::*;
use fulgurite_nbd::Export;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// An option: mostly a valid one, some of unknown numbers or with any data.
fn any_option() -> impl Strategy<Value = Vec<u8>> {
    let names = select(vec!["", "disk", "other"]);
    let items = vec(0..5_u16, 0..4);
    let queries = vec(select(vec!["base:", "base:allocation", "qemu:x"]), 0..3);
    prop_oneof![
        Just(option(LIST, b"")),
        Just(option(STRUCTURED, b"")),
        (names.clone(), items).prop_map(|(name, items)| option(INFO, &info(name, &items))),
        (select(vec![LIST_META, SET_META]), names, queries)
            .prop_map(|(number, name, queries)| option(number, &contexts(name, &queries))),
        (2..13_u32, vec(any::<u8>(), 0..40)).prop_map(|(number, data)| option(number, &data)),
        (3..13_u32, 16_000..17_000_usize).prop_map(|(number, bytes)| option(number, &vec![0; bytes])),
    ]
}

/// A request of any kind, most of them valid.
fn any_request() -> impl Strategy<Value = Vec<u8>> {
    let offset = prop_oneof![8 => (0..64_u64).prop_map(|block| block * 512), 1 => any::<u64>()];
    let length = prop_oneof![8 => (0..6_u32).prop_map(|blocks| blocks * 512), 1 => 0..70_000_u32];
    let command = prop_oneof![20 => select(vec![0, 1, 1, 3, 4, 5, 6, 7]), 1 => 2..10_u16];
    (prop_oneof![8 => 0..2_u16, 1 => 0..64_u16], command, any::<u64>(), offset, length).prop_map(
        |(flags, command, cookie, offset, length)| {
            let mut bytes = request(flags, command, cookie, offset, length);
            let data = if command == 1 { length as usize } else { 0 };
            bytes.resize(bytes.len() + data, cookie as u8);
            bytes
        },
    )
}

/// The bytes of a whole connection.
fn any_connection() -> impl Strategy<Value = Vec<u8>> {
    let start = prop_oneof![8 => Just(3), 1 => 0..5_u32].prop_map(flags);
    let end_of_options = select(vec![
        option(GO, &info("disk", &[3])),
        option(GO, &info("", &[])),
        option(EXPORT_NAME, b"disk"),
        option(ABORT, b""),
    ]);
    let parts = (start, vec(any_option(), 0..5), end_of_options, vec(any_request(), 0..12));
    parts.prop_map(|(start, options, end, requests)| {
        [start, options.concat(), end, requests.concat()].concat()
    })
}

/// Returns the events and the replies of a connection whose bytes arrive in pieces that end at `cuts`.
fn serve(export: Export, bytes: &[u8], cuts: &[Index]) -> (Vec<Event>, Vec<u8>) {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.push(bytes.len());
    cuts.sort_unstable();
    let (mut connection, mut events, mut from) = (Connection::new(export), Vec::new(), 0);
    for cut in cuts {
        events.extend(connection.send(&bytes[from..cut]));
        if let Some(Event::Closed(_)) = events.last() {
            break;
        }
        from = cut;
    }
    (events, connection.replies())
}

proptest! {
    /// The rule: the same bytes in any pieces give the same requests, the same end and the same replies. This
    /// holds for damaged bytes too.
    #[test]
    fn pieces_change_nothing(
        mut bytes in any_connection(),
        damage in vec((any::<Index>(), any::<u8>()), 0..3),
        is_damaged in any::<bool>(),
        cuts in vec(any::<Index>(), 0..40),
        read_only in any::<bool>(),
    ) {
        for (at, value) in damage.into_iter().filter(|_| is_damaged) {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let export = Export { read_only, ..export() };
        let whole = serve(export.clone(), &bytes, &[]);
        prop_assert_eq!(&serve(export, &bytes, &cuts), &whole);
    }

    /// The rule: any bytes, from the beginning or in any phase, cause no panic and no endless loop, and the
    /// session never waits for more than its bound.
    #[test]
    fn any_bytes_do_no_harm(
        start in 0..4_usize,
        bytes in vec(any::<u8>(), 0..2000),
        cuts in vec(any::<Index>(), 0..5),
    ) {
        let go = [flags(3), option(GO, &info("", &[]))].concat();
        let starts = [vec![], flags(3), go, b"\0\0\0\x03IHAVEOPT".to_vec()];
        serve(export(), &[starts[start].clone(), bytes].concat(), &cuts);
    }

    /// The rule: any fields of a request behind its magic number cause no panic.
    #[test]
    fn any_requests_do_no_harm(fields in vec(any::<[u8; 24]>(), 0..50), cuts in vec(any::<Index>(), 0..5)) {
        let requests = fields.iter().flat_map(|fields| [&[0x25, 0x60, 0x95, 0x13], &fields[..]].concat());
        let mut bytes = [flags(3), option(GO, &info("", &[]))].concat();
        bytes.extend(requests);
        serve(export(), &bytes, &cuts);
    }
}
