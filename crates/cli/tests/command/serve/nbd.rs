//! Tests the block device with the clients that people use: libnbd, QEMU and fio.

use super::client::{Client, EINVAL, FLUSH, READ, WRITE};
use super::drive::Served;
use crate::folder::number;
use serde_json::Value;

/// A drive that takes no time.
const SMALL: &str = "mem:page=4KiB,pages=1000 --speed max";

/// Returns the extents that `nbdinfo` finds: offset, length and type.
fn extents(served: &Served) -> Vec<(u64, u64, u64)> {
    let map: Value = serde_json::from_str(&served.done("nbdinfo --map --json \"$uri\"")).unwrap();
    let number = |extent: &Value, name| extent[name].as_u64().unwrap();
    let extent = |extent| (number(extent, "offset"), number(extent, "length"), number(extent, "type"));
    map.as_array().unwrap().iter().map(extent).collect()
}

/// The rule: a client is told the size of the drive, its page as the preferred block, and every command that the
/// server knows.
#[test]
fn a_client_is_told_the_drive() {
    let served = Served::new(SMALL);
    let told: Value = serde_json::from_str(&served.done("nbdinfo --json \"$uri\"")).unwrap();
    let export = &told["exports"][0];
    let sizes = ["export-size", "block_size_minimum", "block_size_preferred", "block_size_maximum"];
    assert_eq!(sizes.map(|name| export[name].as_u64().unwrap()), [4_096_000, 512, 4_096, 32 << 20]);
    let can = ["flush", "fua", "trim", "zero", "fast_zero", "multi_conn", "cache", "df"];
    for can in can {
        assert_eq!(export[format!("can_{can}")], true, "{can}: {export}");
    }
    assert_eq!(export["is_read_only"], false);
    assert_eq!(export["contexts"][0], "base:allocation");
}

/// The rule: pages are holes until they are written, and again when they are trimmed.
#[test]
fn the_map_shows_written_and_trimmed_pages() {
    const DATA: u64 = 0;
    const HOLE: u64 = 3;
    let served = Served::new(SMALL);
    assert_eq!(extents(&served), [(0, 4_096_000, HOLE)]);
    served.done("qemu-io -f raw -c 'write 16k 64k' -c 'discard 32k 8k' \"$uri\"");
    let expected = [
        (0, 16 << 10, HOLE),
        (16 << 10, 16 << 10, DATA),
        (32 << 10, 8 << 10, HOLE),
        (40 << 10, 40 << 10, DATA),
        (80 << 10, 4_096_000 - (80 << 10), HOLE),
    ];
    assert_eq!(extents(&served), expected);
}

/// The rule: an image that several connections copy to the drive, and back, is the same.
#[test]
fn an_image_survives_a_copy_in_and_out() {
    let served = Served::new("mem:page=4KiB,pages=16384 --speed max");
    served.done("head -c 64M /dev/urandom > image; nbdcopy --connections=4 image \"$uri\"");
    served.done("nbdcopy --connections=4 \"$uri\" copy; cmp image copy; rm copy");
    served.done("qemu-img compare -f raw -F raw image \"$uri\"");
    // An image with holes, which QEMU copies as zeros.
    served.done("truncate -s 64M sparse; dd if=image of=sparse bs=1M count=3 seek=20 conv=notrunc");
    served.done("qemu-img convert -n -f raw -O raw sparse \"$uri\"");
    served.done("qemu-img compare -f raw -F raw sparse \"$uri\"");
    assert_eq!(served.shell("qemu-img compare -f raw -F raw image \"$uri\"").code, 1);
}

/// The rule: reads give what was written last, and zeros after a discard and a write of zeros.
#[test]
fn reads_give_what_was_written_last() {
    let served = Served::new(SMALL);
    // QEMU reports a difference from the pattern, and fails.
    let commands = "write -P 7 4k 64k; read -P 7 4k 64k; write -f -P 8 5k 1k; read -P 8 5k 1k; read -P 7 4k 1k; \
        discard 8k 4k; read -P 0 8k 4k; read -P 7 12k 4k; write -z 16k 4k; read -P 0 16k 4k; write -zu 20k 6k; \
        read -P 0 20k 6k; read -P 7 26k 4k; write -z 28k 512; read -P 0 28k 512; read -P 7 29k 3k; flush";
    let outcome = served.qemu_io(commands);
    assert_eq!(outcome.code, 0, "{}", outcome.stdout);
    let wrong = served.qemu_io("read -P 9 4k 1k");
    assert!(wrong.code == 1 && wrong.stdout.contains("Pattern verification failed"), "{}", wrong.stdout);
}

/// The rule: a request that is not aligned, is out of range or is unknown is refused, and the connection goes on.
#[test]
fn invalid_requests_are_refused_one_by_one() {
    let served = Served::new(SMALL);
    let mut client = served.client();
    let (end, sector) = (client.bytes, vec![1; 512]);
    client.write(1_024, &sector).unwrap();
    let block_status = 7;
    for (command, offset, length) in [
        (READ, 1, 512),
        (READ, 512, 100),
        (READ, end, 512),
        (READ, end - 512, 1_024),
        (READ, u64::MAX - 511, 512),
        (READ, 0, 0),
        (READ, 0, (32 << 20) + 512),
        (block_status, 0, 512),
        (99, 0, 0),
    ] {
        client.send(command, offset, length, &[]);
        let refused = client.answer(0).expect("the connection goes on");
        assert!(refused.is_err(), "{command} {offset}+{length}");
        assert_eq!(client.read(1_024, 512).as_ref(), Ok(&sector));
    }
    // The data of a refused write is skipped.
    for (offset, length) in [(1, 512), (512, 100), (end, 512)] {
        assert!(client.write(offset, &vec![2; length]).is_err(), "{offset}+{length}");
        assert_eq!(client.read(0, 1_024), Ok(vec![0; 1_024]), "{offset}+{length}");
    }
    assert_eq!(client.read(1, 512), Err(EINVAL));
}

/// The rule: whatever garbage collection moves, an image on a simulated drive stays the same, and the figures
/// count each page once.
#[test]
fn garbage_collection_moves_no_bytes() {
    let served = Served::new("virtual:blocks=20,pages=8,channels=2,dies=2 --speed max --json");
    let mut client = served.client();
    let pages = client.bytes / 4_096;
    let mut random = 7_u64;
    for _ in 0..3 * pages {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        client.write((random >> 33) % pages * 4_096, &random.to_be_bytes().repeat(512)).unwrap();
    }
    let copy = "nbdcopy --connections=4";
    served.done(&format!("head -c {} /dev/urandom > image; {copy} image \"$uri\"", pages * 4_096));
    let wrote = overwrite_part(&mut client, pages);
    served.done(&format!(
        "{copy} \"$uri\" copy; cmp -n {wrote} copy <(yes 0123456); cmp -i {wrote} image copy"
    ));
    let row = served.row();
    let count = |column| number(&row, column) as u64;
    assert!(number(&row, "waf") > 1.1 && count("gc_pages_copied") > 0, "{row}");
    assert_eq!(count("host_pages_written"), 4 * pages + wrote / 4_096, "{row}");
    // Copies that are under way at the end are counted already.
    let (written, programmed) =
        (count("host_pages_written") + count("gc_pages_copied"), count("flash_pages_programmed"));
    assert!(programmed <= written && written - programmed < 64, "{row}");
    assert!(count("reads") > 0 && count("ops") >= count("reads") + count("writes"), "{row}");
}

/// Overwrites pages at the beginning of the drive, several in flight. Returns the number of bytes.
fn overwrite_part(client: &mut Client, pages: u64) -> u64 {
    let data = b"0123456\n".repeat(512);
    let written = pages / 5;
    for at in 0..written {
        client.send(WRITE, at * 4_096, 4_096, &data);
    }
    client.send(FLUSH, 0, 0, &[]);
    (0..=written).for_each(|_| assert_eq!(client.answer(0), Some(Ok(Vec::new()))));
    written * 4_096
}

/// The rule: fio finds the checksum of every block that it has written, with 16 requests in flight.
#[test]
fn fio_verifies_its_checksums() {
    let served = Served::new("mem:page=4KiB,pages=4096 --speed max --json");
    served.done(
        "fio --name=verify --ioengine=nbd --uri=\"$uri\" --rw=randrw --bs=4k --size=4M --iodepth=16 --verify=crc32c \
         --verify_fatal=1 --norandommap=0 --thread --output=fio.txt",
    );
    let row = served.row();
    // Each block is written once or read, and every written block is read for its verification.
    assert!(number(&row, "writes") > 100.0 && number(&row, "reads") > number(&row, "writes"), "{row}");
}
