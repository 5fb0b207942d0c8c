//! Handshakes of every kind, and every error of the handshake.

mod client;

use client::*;
use fulgurite_nbd::{BlockSizes, Command, Export, ExportError, Reason, Request, Session, Step};
use std::sync::Arc;

/// The transmission flags of a writable export: flags, flush, FUA, trim, zeros, cache and fast zeros.
const FLAGS: u16 = 1 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 6 | 1 << 10 | 1 << 11;

fn is_fault(events: &[Event]) -> bool {
    matches!(events, [Event::Closed(Reason::Fault(_))])
}

/// Sends a read, and says whether it reaches the caller.
fn transmits(connection: &mut Connection) -> bool {
    let read = Request { cookie: 7, command: Command::Read { offset: 512, length: 512 } };
    connection.send(&request(0, 0, 7, 512, 512)) == [Event::Request(read)]
}

/// The rule: `NBD_OPT_EXPORT_NAME` is answered with size and flags, and with 124 zeros unless the client does
/// not want them. It works without fixed newstyle, for the empty name and for the export's own.
#[test]
fn an_export_name_enters_transmission() {
    for (client, zeros) in [(0, 124), (1, 124), (2, 0), (3, 0)] {
        for name in ["", "disk"] {
            let mut connection = Connection::new(export());
            assert_eq!(connection.send(&flags(client)), []);
            assert_eq!(connection.send(&option(EXPORT_NAME, name.as_bytes())), []);
            let expected = [&BYTES.to_be_bytes()[..], &FLAGS.to_be_bytes(), &vec![0; zeros]].concat();
            assert_eq!(connection.replies(), expected, "flags {client}, name {name:?}");
            assert!(transmits(&mut connection));
        }
    }
}

/// The rule: `NBD_OPT_EXPORT_NAME` has no error replies, so a name that is unknown or too long ends the
/// session. A name that is too long ends it before the name arrives.
#[test]
fn an_unknown_export_name_ends_the_session() {
    for name in ["Disk", "disk ", "\0"] {
        let mut connection = Connection::fixed(export());
        assert!(is_fault(&connection.send(&option(EXPORT_NAME, name.as_bytes()))), "{name:?}");
        assert_eq!(connection.replies(), []);
        assert!(is_fault(&connection.send(&option(LIST, b""))), "a closed session stays closed");
    }
    let long = option(EXPORT_NAME, &[b'a'; 4097]);
    assert!(is_fault(&Connection::fixed(export()).send(&long[..16])));
    let longest = option(EXPORT_NAME, &[b'a'; 4096]);
    assert_eq!(Connection::fixed(export()).send(&longest[..16]), []);
}

/// The rule: the session ends if the client sets flags that the server did not offer, sends bytes that are no
/// option, or sends an option without having set the flag of fixed newstyle.
#[test]
fn violations_end_the_session() {
    for unknown in [4, 7, 1 << 16, 1 << 31] {
        assert!(is_fault(&Connection::new(export()).send(&flags(unknown))), "{unknown}");
    }
    let mut wrong = option(LIST, b"");
    wrong[7] = b'S';
    assert!(is_fault(&Connection::fixed(export()).send(&wrong)));
    for number in [ABORT, LIST, INFO, GO, STRUCTURED, 99] {
        let mut connection = Connection::new(export());
        connection.send(&flags(2));
        assert!(is_fault(&connection.send(&option(number, b""))), "{number}");
    }
}

/// The rule: the list has the export with its name and description. The option takes no data.
#[test]
fn the_list_has_the_export() {
    let mut connection = Connection::fixed(export());
    let expected = [string("disk"), b"a disk".to_vec()].concat();
    assert_eq!(connection.ask(LIST, b""), [(LIST, 2, expected), (LIST, ACK, vec![])]);
    assert_eq!(connection.ask_one(LIST, b"x"), INVALID);
}

fn info_export(flags: u16) -> Vec<u8> {
    [&[0, 0], &BYTES.to_be_bytes()[..], &flags.to_be_bytes()].concat()
}

/// The rule: `NBD_OPT_INFO` and `NBD_OPT_GO` always tell size and flags. They tell name, description and
/// block sizes once if the client asks, and ignore other items. Only the latter enters transmission.
#[test]
fn information_is_told_when_asked() {
    let sizes: Vec<u8> = [&[0, 3], &[512_u32, 4096, 65536].map(u32::to_be_bytes).concat()[..]].concat();
    for (number, name) in [(INFO, ""), (INFO, "disk"), (GO, ""), (GO, "disk")] {
        let reply = |data: Vec<u8>| (number, 3, data);
        let mut connection = Connection::fixed(export());
        let expected = [
            reply(info_export(FLAGS)),
            reply(b"\0\x01disk".to_vec()),
            reply(b"\0\x02a disk".to_vec()),
            reply(sizes.clone()),
            (number, ACK, vec![]),
        ];
        assert_eq!(connection.ask(number, &info(name, &[3, 2, 9, 1, 0, 3])), expected);
        assert_eq!(transmits(&mut connection), number == GO);
    }
    let mut connection = Connection::fixed(export());
    assert_eq!(connection.ask(GO, &info("", &[])), [(GO, 3, info_export(FLAGS)), (GO, ACK, vec![])]);
}

/// The rule: another name is unknown, and the client may go on.
#[test]
fn another_name_is_unknown() {
    let mut connection = Connection::fixed(export());
    connection.ask(STRUCTURED, b"");
    assert_eq!(connection.ask_one(INFO, &info("other", &[3])), UNKNOWN);
    assert_eq!(connection.ask_one(GO, &info("dis", &[])), UNKNOWN);
    assert_eq!(connection.ask_one(LIST_META, &contexts("other", &[])), UNKNOWN);
    assert_eq!(connection.ask_one(SET_META, &contexts("other", &["base:allocation"])), UNKNOWN);
    assert_eq!(connection.ask(GO, &info("disk", &[])).len(), 2);
    assert!(transmits(&mut connection));
}

/// The rule: data whose lengths do not fit together, and strings that the protocol forbids, are invalid. The
/// client may go on.
#[test]
fn malformed_data_are_invalid() {
    let mut connection = Connection::fixed(export());
    connection.ask(STRUCTURED, b"");
    let long = "a".repeat(4097);
    let cut = |mut data: Vec<u8>| {
        data.pop();
        data
    };
    let more = |mut data: Vec<u8>| {
        data.push(0);
        data
    };
    let whole = [info("disk", &[1, 3]), info("", &[])];
    for data in whole.iter().cloned().flat_map(|data| [cut(data.clone()), more(data)]).chain([
        vec![],
        vec![255; 8],
        info("a\0", &[]),
        info(&long, &[]),
        [&[0, 0, 0, 1, 0xff], &[0, 0][..]].concat(),
    ]) {
        assert_eq!(connection.ask_one(INFO, &data), INVALID, "{data:?}");
        assert_eq!(connection.ask_one(GO, &data), INVALID, "{data:?}");
    }
    let whole = [contexts("disk", &["base:", "base:allocation"]), contexts("", &[])];
    for data in whole.iter().cloned().flat_map(|data| [cut(data.clone()), more(data)]).chain([
        vec![],
        vec![255; 8],
        [string(""), vec![255; 4]].concat(),
        contexts("a\0", &[]),
        contexts("", &[&long]),
        contexts("", &["base:allocation", "base:\0"]),
    ]) {
        assert_eq!(connection.ask_one(LIST_META, &data), INVALID, "{data:?}");
        assert_eq!(connection.ask_one(SET_META, &data), INVALID, "{data:?}");
    }
    assert_eq!(connection.ask_one(INFO, &info(&long[1..], &[])), UNKNOWN, "4096 bytes are not too long");
}

/// The rule: structured replies are negotiated by an option without data, and the flag "do not fragment"
/// follows them.
#[test]
fn structured_replies_are_negotiated() {
    let mut connection = Connection::fixed(export());
    assert_eq!(connection.ask_one(STRUCTURED, b"x"), INVALID);
    assert_eq!(connection.ask(INFO, &info("", &[]))[0].2, info_export(FLAGS));
    assert_eq!(connection.ask_one(STRUCTURED, b""), ACK);
    assert_eq!(connection.ask(INFO, &info("", &[]))[0].2, info_export(FLAGS | 1 << 7));
}

/// The rule: the transmission flags say whether the export is read-only, in which case it has no features of
/// writes, and whether several connections may share it.
#[test]
fn flags_describe_the_export() {
    for (read_only, multi_conn, expected) in [
        (false, false, FLAGS),
        (false, true, FLAGS | 1 << 8),
        (true, false, 1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 10),
        (true, true, 1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 8 | 1 << 10),
    ] {
        let mut connection = Connection::fixed(Export { read_only, multi_conn, ..export() });
        assert_eq!(connection.ask(INFO, &info("", &[]))[0].2, info_export(expected));
    }
}

/// The rule: metadata contexts need structured replies. The list has `base:allocation` for no query, for its
/// name and for its namespace. Only its name selects it. Other queries select nothing.
#[test]
fn contexts_are_listed_and_selected() {
    let mut connection = Connection::fixed(export());
    assert_eq!(connection.ask_one(LIST_META, &contexts("", &[])), INVALID);
    assert_eq!(connection.ask_one(SET_META, &contexts("", &["base:allocation"])), INVALID);
    connection.ask(STRUCTURED, b"");
    let context = |id: u8| [&[0, 0, 0, id], &b"base:allocation"[..]].concat();
    for (queries, listed, selected) in [
        (&[][..], true, false),
        (&["base:"], true, false),
        (&["base:allocation"], true, true),
        (&["qemu:x", "base:allocation", "base:", "base:allocation"], true, true),
        (&["base:alloc", "base:allocation ", "Base:allocation", "x", ""], false, false),
    ] {
        let with = |number, is_in: bool, id| {
            let context = is_in.then(|| (number, 4, context(id)));
            context.into_iter().chain([(number, ACK, vec![])]).collect::<Vec<_>>()
        };
        let data = contexts("disk", queries);
        assert_eq!(connection.ask(LIST_META, &data), with(LIST_META, listed, 0), "{queries:?}");
        assert_eq!(connection.ask(SET_META, &data), with(SET_META, selected, 1), "{queries:?}");
    }
}

/// The rule: the last selection of contexts counts, even if it fails. A list changes nothing.
#[test]
fn the_last_selection_counts() {
    let too_long = [0; 20_000];
    for (last, is_selected) in [
        (option(LIST_META, &contexts("", &["base:allocation"])), true),
        (option(SET_META, &contexts("", &["base:"])), false),
        (option(SET_META, &contexts("other", &["base:allocation"])), false),
        (option(SET_META, b""), false),
        (option(SET_META, &too_long), false),
    ] {
        let mut connection = Connection::fixed(export());
        connection.ask(STRUCTURED, b"");
        connection.ask(SET_META, &contexts("", &["base:allocation"]));
        connection.send(&last);
        connection.send(&option(GO, &info("", &[])));
        connection.replies();
        let is_served = connection.command(&request(0, 7, 1, 0, 512)).is_some();
        assert_eq!(is_served, is_selected);
        assert_eq!(connection.replies(), if is_selected { vec![] } else { error_chunk(22, 1) });
    }
}

/// The rule: options without support are refused as such, whatever their data are: export peeking, TLS,
/// extended headers, numbers without a meaning. The client may go on.
#[test]
fn other_options_are_not_supported() {
    let mut connection = Connection::fixed(export());
    for number in [0, 4, 5, 11, 12, 999, u32::MAX] {
        for data in [0, 3, 100_000] {
            assert_eq!(connection.ask_one(number, &vec![1; data]), UNSUP, "option {number}, {data} bytes");
        }
    }
    assert_eq!(connection.ask(LIST, b"").len(), 2);
}

/// The rule: an option that is too long is skipped in pieces, without being held, and answered when all its
/// data have arrived. One of 16 KiB is not too long.
#[test]
fn long_options_are_skipped() {
    for number in [INFO, GO, LIST_META, SET_META] {
        let mut connection = Connection::fixed(export());
        connection.ask(STRUCTURED, b"");
        let long = option(number, &vec![0; (16 << 10) + 1]);
        for piece in long[..long.len() - 1].chunks(1000) {
            assert_eq!(connection.send(piece), []);
            assert!(connection.session.needs() <= 16);
        }
        assert_eq!(connection.replies(), []);
        assert_eq!(connection.send(&long[long.len() - 1..]), []);
        let replies = option_replies(&connection.replies());
        assert!(matches!(replies[..], [(option, TOO_BIG, _)] if option == number), "{replies:?}");
        assert_eq!(connection.ask_one(number, &vec![0; 16 << 10]), INVALID);
    }
}

/// The rule: the client may end the negotiation. Data of that option do not matter.
#[test]
fn the_client_may_abort() {
    for data in [0, 5, 100_000] {
        for mut connection in [Connection::new(export()), Connection::refused("full")] {
            connection.send(&flags(1));
            assert_eq!(connection.send(&option(ABORT, &vec![0; data])), [Event::Closed(Reason::Client)]);
            assert_eq!(option_replies(&connection.replies()), [(ABORT, ACK, vec![])]);
        }
    }
}

/// The rule: a server that refuses a client answers each option with its message, and ends the session for
/// the option that has no error reply.
#[test]
fn a_refusing_server_says_why() {
    let mut connection = Connection::refused("all 8 connections are in use");
    connection.send(&flags(3));
    for number in [LIST, 5, INFO, GO, STRUCTURED, LIST_META, SET_META, 999] {
        for data in [0, 5, 100_000] {
            let expected = (number, POLICY, b"all 8 connections are in use".to_vec());
            assert_eq!(connection.ask(number, &vec![0; data]), [expected]);
        }
    }
    assert!(is_fault(&connection.send(&option(EXPORT_NAME, b""))));
    assert_eq!(connection.replies(), []);
}

/// The rule: a message has at most 4096 bytes, and is cut between characters.
#[test]
fn a_long_message_is_cut() {
    for (message, expected) in [("é".repeat(3000), 4096), (format!("a{}", "é".repeat(3000)), 4095)] {
        let mut connection = Connection::refused(&message);
        connection.send(&flags(3));
        assert_eq!(connection.ask(GO, b"")[0].2, &message.as_bytes()[..expected]);
    }
}

/// The rule: the replies of one step are bounded, however many options the client sends at once. None is
/// lost.
#[test]
fn the_replies_of_a_step_are_bounded() {
    let (mut session, mut out) = (Session::new(Arc::new(export()), &mut Vec::new()), Vec::new());
    let input = [flags(3), option(LIST, b"").repeat(10_000)].concat();
    let (mut used, mut replies) = (0, 0);
    loop {
        let (bytes, step) = session.step(&input[used..], &mut out);
        assert!(out.len() < 80 << 10);
        used += bytes;
        replies += option_replies(&out).len();
        out.clear();
        match step {
            Step::Send => {}
            Step::Wait => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((used, replies), (input.len(), 20_000));
}

/// The rule: an export is refused if the protocol does not allow its texts, sizes or block sizes.
#[test]
fn exports_are_checked() {
    let sizes = |minimum, preferred, maximum| Export {
        block: BlockSizes { minimum, preferred, maximum },
        bytes: 1 << 20,
        ..export()
    };
    let text = |bytes| "a".repeat(bytes);
    for (export, expected) in [
        (export(), Ok(())),
        (Export { block: BlockSizes::default(), bytes: 1, ..export() }, Ok(())),
        (Export { name: text(4096), description: text(4096), bytes: 0, ..export() }, Ok(())),
        (Export { name: text(4097), ..export() }, Err(ExportError::Name)),
        (Export { name: "a\0".into(), ..export() }, Err(ExportError::Name)),
        (Export { description: text(4097), ..export() }, Err(ExportError::Description)),
        (Export { description: "\0".into(), ..export() }, Err(ExportError::Description)),
        (sizes(0, 4096, 65536), Err(ExportError::Minimum)),
        (sizes(513, 4096, 65536), Err(ExportError::Minimum)),
        (sizes(1 << 16, 1 << 16, 1 << 16), Ok(())),
        (sizes(1 << 17, 1 << 17, 1 << 17), Err(ExportError::Minimum)),
        (sizes(1, 512, 512), Ok(())),
        (sizes(1, 256, 65536), Err(ExportError::Preferred)),
        (sizes(1024, 512, 65536), Err(ExportError::Preferred)),
        (sizes(1, 4097, 65536), Err(ExportError::Preferred)),
        (sizes(1, 4096, 4095), Err(ExportError::Maximum)),
        (sizes(1, 4096, 1 << 30), Ok(())),
        (sizes(1, 4096, (1 << 30) + 1), Err(ExportError::Maximum)),
        (Export { bytes: 1000, ..export() }, Err(ExportError::Size)),
    ] {
        assert_eq!(export.check(), expected, "{export:?}");
    }
}

/// The rule: a session serves from the end of its handshake to its own end, so a caller may give up a client that does
/// not end the handshake, and must let one be idle that has.
#[test]
fn a_session_serves_from_the_end_of_its_handshake() {
    let mut out = Vec::new();
    let mut session = Session::new(Arc::new(export()), &mut out);
    let mut after = |bytes: &[u8]| {
        session.step(bytes, &mut out);
        session.is_serving()
    };
    assert!(!after(&[]) && !after(&flags(1)) && !after(&option(LIST, b"")));
    assert!(after(&option(EXPORT_NAME, b"")));
    assert!(!after(&request(0, 2, 7, 0, 0)), "a client that disconnects");
}
