//! Requests and replies, and every reason for which a session refuses a request.

mod client;

use client::*;
use fulgurite_nbd::{BlockSizes, Command, Errno, Export, Extent, Reason, Request};

const EPERM: u32 = 1;
const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;
const EOVERFLOW: u32 = 75;

/// The numbers of the commands that have a range: read, write, trim, cache, write zeroes and block status.
const WITH_RANGE: [u16; 6] = [0, 1, 4, 5, 6, 7];

/// Returns a request of any command, with data if it is a write.
fn with_data(flags: u16, command: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = request(flags, command, cookie, offset, length);
    if command == 1 {
        bytes.resize(bytes.len() + length as usize, 0xda);
    }
    bytes
}

/// Expects that the session refuses a request, and that the next one works.
fn expect_refusal(connection: &mut Connection, structured: bool, bytes: &[u8], errno: u32) {
    assert_eq!(connection.command(bytes), None, "{:?}", &bytes[..28]);
    let expected = if structured { error_chunk(errno, 9) } else { simple(errno, 9) };
    assert_eq!(connection.replies(), expected, "{:?}", &bytes[..28]);
    assert_eq!(connection.command(&request(0, 3, 1, 0, 0)), Some(Command::Flush));
}

/// The rule: each command reaches the caller with its cookie, range, data and flags.
#[test]
fn commands_reach_the_caller() {
    let (offset, length, data) = (1 << 20, 512, &[3; 512][..]);
    let zeroes =
        |durable, may_trim, fast_only| Command::WriteZeroes { offset, length, durable, may_trim, fast_only };
    let mut connection = Connection::transmitting(export(), true, true);
    for (bytes, command) in [
        (request(0, 0, 5, offset, length), Command::Read { offset, length }),
        (request(4, 0, 5, offset, length), Command::Read { offset, length }),
        (write(0, 5, offset, data), Command::Write { offset, data, durable: false }),
        (write(1, 5, offset, data), Command::Write { offset, data, durable: true }),
        (request(0, 3, 5, 0, 0), Command::Flush),
        (request(0, 4, 5, offset, length), Command::Trim { offset, length, durable: false }),
        (request(1, 4, 5, offset, length), Command::Trim { offset, length, durable: true }),
        (request(0, 5, 5, offset, length), Command::Cache { offset, length }),
        (request(0, 6, 5, offset, length), zeroes(false, true, false)),
        (request(1, 6, 5, offset, length), zeroes(true, true, false)),
        (request(2, 6, 5, offset, length), zeroes(false, false, false)),
        (request(16, 6, 5, offset, length), zeroes(false, true, true)),
        (request(0, 7, 5, offset, length), Command::BlockStatus { offset, length, one: false }),
        (request(8, 7, 5, offset, length), Command::BlockStatus { offset, length, one: true }),
    ] {
        assert_eq!(connection.send(&bytes), [Event::Request(Request { cookie: 5, command })]);
    }
    assert_eq!(connection.replies(), []);
}

/// The rule: FUA is valid for every command, the other flags for one command each, and "do not fragment" only
/// with structured replies. Every other flag is invalid.
#[test]
fn flags_belong_to_commands() {
    for structured in [false, true] {
        let mut connection = Connection::transmitting(export(), structured, true);
        for command in [0, 1, 3, 4, 5, 6, 7].into_iter().filter(|&command| structured || command != 7) {
            let valid = match command {
                0 if structured => 1 | 4,
                6 => 1 | 2 | 16,
                7 => 1 | 8,
                _ => 1,
            };
            let (offset, length) = if command == 3 { (0, 0) } else { (0, 512) };
            for bit in 0..16 {
                let flag = 1 << bit;
                let bytes = with_data(flag, command, 9, offset, length);
                if valid & flag == 0 {
                    expect_refusal(&mut connection, structured, &bytes, EINVAL);
                } else {
                    assert!(connection.command(&bytes).is_some(), "command {command}, flag {flag}");
                }
            }
        }
    }
}

/// The rule: an unknown command has no data, and is invalid.
#[test]
fn unknown_commands_are_invalid() {
    for structured in [false, true] {
        let mut connection = Connection::transmitting(export(), structured, false);
        for command in [8, 9, 255, u16::MAX] {
            expect_refusal(&mut connection, structured, &request(0, command, 9, 0, 512), EINVAL);
        }
    }
}

/// The rule: a range may end at the export's end, but not behind it. Then a write has no space, and another
/// command is invalid.
#[test]
fn ranges_end_with_the_export() {
    let mut connection = Connection::transmitting(export(), true, true);
    for command in WITH_RANGE {
        assert!(connection.command(&with_data(0, command, 9, BYTES - 512, 512)).is_some());
        let errno = if matches!(command, 1 | 6) { ENOSPC } else { EINVAL };
        for (offset, length) in
            [(BYTES - 512, 1024), (BYTES, 512), (1 << 62, 512), (u64::MAX - 511, 512), (u64::MAX - 511, 1024)]
        {
            expect_refusal(&mut connection, true, &with_data(0, command, 9, offset, length), errno);
        }
    }
}

/// The rule: a range has at least one byte and is aligned to the minimum block size, even if the client did
/// not ask for the block sizes.
#[test]
fn ranges_are_aligned_and_not_empty() {
    for told in [false, true] {
        let mut connection = Connection::transmitting(export(), true, told);
        for command in WITH_RANGE {
            for (offset, length) in [(0, 0), (512, 0), (256, 512), (512, 256), (1, 1), (511, 1)] {
                expect_refusal(&mut connection, true, &with_data(0, command, 9, offset, length), EINVAL);
            }
        }
    }
    let any = Export { block: BlockSizes::default(), bytes: 1001, ..export() };
    let mut connection = Connection::transmitting(any, true, false);
    for command in WITH_RANGE {
        assert!(connection.command(&with_data(0, command, 9, 998, 3)).is_some());
    }
}

/// The rule: a flush has no range.
#[test]
fn a_flush_has_no_range() {
    let mut connection = Connection::transmitting(export(), false, true);
    expect_refusal(&mut connection, false, &request(0, 3, 9, 512, 0), EINVAL);
    expect_refusal(&mut connection, false, &request(0, 3, 9, 0, 512), EINVAL);
}

/// The rule: a read-only export permits no writes, and everything else.
#[test]
fn a_read_only_export_permits_no_writes() {
    let mut connection = Connection::transmitting(Export { read_only: true, ..export() }, true, true);
    for command in WITH_RANGE {
        let bytes = with_data(0, command, 9, 512, 1024);
        if matches!(command, 1 | 4 | 6) {
            expect_refusal(&mut connection, true, &bytes, EPERM);
        } else {
            assert!(connection.command(&bytes).is_some(), "command {command}");
        }
    }
}

/// The rule: reads and writes have at most the maximum payload. A longer write is invalid. A longer read is
/// too long for a client with structured replies, and invalid for another. Commands without a payload may be
/// longer.
#[test]
fn payloads_are_bounded() {
    for structured in [false, true] {
        let mut connection = Connection::transmitting(export(), structured, true);
        for command in [0, 1] {
            assert!(connection.command(&with_data(0, command, 9, 0, 65536)).is_some());
            let errno = if structured && command == 0 { EOVERFLOW } else { EINVAL };
            expect_refusal(&mut connection, structured, &with_data(0, command, 9, 0, 65536 + 512), errno);
        }
        for command in [4, 5, 6] {
            assert!(connection.command(&request(0, command, 9, 0, BYTES as u32)).is_some());
        }
    }
}

/// The rule: a client that did not ask for the block sizes may read and write 32 MiB, and more only if the
/// export allows more. The bound of the input includes that.
#[test]
fn payloads_are_32_mib_without_block_sizes() {
    for (maximum, at_most) in [(65536, 32 << 20), (64 << 20, 64 << 20)] {
        let block = BlockSizes { maximum, ..export().block };
        let export = Export { block, ..export() };
        assert_eq!(export.input_at_most(), 28 + at_most as usize);
        let mut by_name = Connection::fixed(export.clone());
        by_name.send(&option(EXPORT_NAME, b"disk"));
        by_name.replies();
        for mut connection in [by_name, Connection::transmitting(export, false, false)] {
            assert!(connection.command(&request(0, 0, 9, 0, at_most)).is_some());
            expect_refusal(&mut connection, false, &request(0, 0, 9, 0, at_most + 512), EINVAL);
            assert_eq!(connection.send(&request(0, 1, 9, 0, at_most)), []);
            assert_eq!(connection.session.needs(), 28 + at_most as usize);
        }
    }
}

/// The rule: an export that was not checked causes no panic, and its payloads are bounded too.
#[test]
fn an_unchecked_export_does_no_harm() {
    let block = BlockSizes { minimum: 0, preferred: 0, maximum: u32::MAX };
    let unaligned = Export { block, bytes: u64::MAX, ..export() };
    let endless = Export { block: BlockSizes { minimum: 1, ..block }, ..unaligned.clone() };
    assert_eq!(endless.input_at_most(), 28 + (1 << 30));
    let mut connection = Connection::transmitting(endless, true, true);
    assert!(connection.command(&request(0, 0, 9, 0, 1 << 30)).is_some());
    expect_refusal(&mut connection, true, &request(0, 0, 9, 0, (1 << 30) + 1), EOVERFLOW);
    let mut connection = Connection::transmitting(unaligned, true, true);
    expect_refusal(&mut connection, true, &request(0, 0, 9, 512, 512), EINVAL);
}

/// The rule: a write reaches the caller when its last byte has arrived, and the session says how many it
/// waits for.
#[test]
fn a_write_waits_for_its_data() {
    let mut connection = Connection::transmitting(export(), false, true);
    let bytes = write(0, 9, 0, &[7; 1024]);
    for (from, to, needs) in
        [(0, 27, 28), (27, 28, 28 + 1024), (28, 1000, 28 + 1024), (1000, 1051, 28 + 1024)]
    {
        assert_eq!(connection.send(&bytes[from..to]), []);
        assert_eq!(connection.session.needs(), needs);
    }
    let command = Command::Write { offset: 0, data: &[7; 1024], durable: false };
    assert_eq!(connection.command(&bytes[1051..]), Some(command));
}

/// The rule: the data of a refused write are skipped piece by piece, and are never taken for a request. The
/// error follows the last piece.
#[test]
fn the_data_of_a_refused_write_are_skipped() {
    let mut connection = Connection::transmitting(Export { read_only: true, ..export() }, false, true);
    let data = request(0, 0, 1, 0, 512).repeat(100_000);
    assert_eq!(connection.send(&request(0, 1, 9, 0, data.len() as u32)), []);
    for piece in data[..data.len() - 1].chunks(100_000) {
        assert_eq!(connection.send(piece), []);
        assert_eq!(connection.session.needs(), 1);
    }
    assert_eq!(connection.replies(), []);
    assert_eq!(connection.send(&data[data.len() - 1..]), []);
    assert_eq!(connection.replies(), simple(EPERM, 9));
    assert!(connection.command(&request(0, 0, 1, 0, 512)).is_some());
}

/// The rule: block status needs a selected context.
#[test]
fn block_status_needs_a_context() {
    let mut connection = Connection::transmitting(export(), false, true);
    expect_refusal(&mut connection, false, &request(0, 7, 9, 0, 512), EINVAL);
}

/// The rule: the client ends the session without a reply; bytes that are no request end it too. The replies
/// of earlier requests keep their form.
#[test]
fn a_session_ends() {
    for (bytes, is_fault) in [(request(0, 2, 9, 0, 0), false), (vec![0x25, 0x60, 0x95, 0x14], true)] {
        let mut connection = Connection::transmitting(export(), true, true);
        let bytes = [bytes, vec![0; 28]].concat();
        let events = connection.send(&bytes);
        match events[..] {
            [Event::Closed(Reason::Client)] => assert!(!is_fault),
            [Event::Closed(Reason::Fault(_))] => assert!(is_fault),
            _ => panic!("{events:?}"),
        }
        assert_eq!(connection.replies(), []);
        let mut out = Vec::new();
        connection.session.begin_read_reply(9, 0, 512, &mut out);
        assert_eq!(out[..4], [0x66, 0x8e, 0x33, 0xef]);
    }
}

/// The rule: each reason for a failure has the number of the document.
#[test]
fn errors_have_their_numbers() {
    for structured in [false, true] {
        let connection = Connection::transmitting(export(), structured, true);
        for (errno, number) in [
            (Errno::Perm, 1),
            (Errno::Io, 5),
            (Errno::NoMemory, 12),
            (Errno::Invalid, 22),
            (Errno::NoSpace, 28),
            (Errno::Overflow, 75),
            (Errno::NotSupported, 95),
            (Errno::Shutdown, 108),
        ] {
            let mut out = b"before".to_vec();
            connection.session.reply(0x0102_0304_0506_0708, Err(errno), &mut out);
            let reply = if structured { error_chunk } else { simple };
            assert_eq!(out, [&b"before"[..], &reply(number, 0x0102_0304_0506_0708)].concat());
        }
    }
}

/// The rule: success is a simple reply. The data of a read follow a simple reply, or a chunk that has the
/// offset and is the last one.
#[test]
fn successes_have_their_forms() {
    for structured in [false, true] {
        let connection = Connection::transmitting(export(), structured, true);
        let mut out = Vec::new();
        connection.session.reply(9, Ok(()), &mut out);
        assert_eq!(out, simple(0, 9));
        out.clear();
        connection.session.begin_read_reply(9, 1 << 40, 512, &mut out);
        out.extend([7; 512]);
        let payload = [&(1_u64 << 40).to_be_bytes()[..], &[7; 512]].concat();
        let expected =
            if structured { chunk(1, 9, &payload) } else { [&simple(0, 9)[..], &[7; 512]].concat() };
        assert_eq!(out, expected);
    }
}

/// The rule: extents carry the number of the context, their lengths, and the bits for a hole (1) and for
/// zeros (2). A reply has at most 2^20 of them, and none is an error.
#[test]
fn extents_have_lengths_and_states() {
    let connection = Connection::transmitting(export(), true, true);
    let mut extents = Vec::new();
    let mut payload = vec![0, 0, 0, 1];
    for (bytes, hole, zero) in
        [(512, false, false), (1024, true, false), (4096, false, true), (512, true, true)]
    {
        extents.push(Extent { bytes, hole, zero });
        payload.extend(bytes.to_be_bytes());
        payload.extend([0, 0, 0, u8::from(hole) + 2 * u8::from(zero)]);
    }
    let reply = |extents: &[Extent]| {
        let mut out = Vec::new();
        connection.session.reply_block_status(9, extents, &mut out);
        out
    };
    assert_eq!(reply(&extents), chunk(5, 9, &payload));
    assert_eq!(reply(&[]), error_chunk(5, 9));
    let many = reply(&vec![extents[0]; (1 << 20) + 1]);
    assert_eq!(many.len(), 20 + 4 + (8 << 20));
    assert_eq!(many[16..20], (4_u32 + (8 << 20)).to_be_bytes());
}
