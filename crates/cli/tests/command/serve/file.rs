//! Tests the folder: its file is the drive.

use super::drive::Served;
use crate::folder::Folder;

const SMALL: &str = "mem:page=4KiB,pages=1000 --power volatile";

/// Returns the number of pages that a power cut may lose. The drive is on again.
fn pages_unflushed(served: &Served) -> u64 {
    served.told("power-cut")["pages_unflushed"].as_u64().unwrap()
}

/// The rule: the folder has one file, which has the size of the drive and keeps it.
#[test]
fn the_folder_has_one_file_of_a_fixed_size() {
    let served = Served::mounted(SMALL);
    assert_eq!(served.done("ls -A d; stat -c %s d/drive"), "drive\n4096000\n");
    for script in [
        "truncate -s 0 d/drive",
        "truncate -s 5M d/drive",
        "echo x > d/drive",
        "echo x > d/other",
        "mkdir d/other",
        "rm -f d/drive",
        "mv d/drive d/other",
        "dd if=/dev/zero of=d/drive bs=4k seek=1000 count=1 conv=notrunc",
    ] {
        let outcome = served.shell(script);
        assert_eq!(outcome.code, 1, "{script}: {}", outcome.stderr);
        assert_eq!(served.done("ls -A d; stat -c %s d/drive"), "drive\n4096000\n", "{script}");
    }
    assert_eq!(served.done("tail -c +4096001 d/drive"), "", "there is nothing behind the end");
    assert_eq!(served.done("cat d/drive | wc -c").trim(), "4096000");
}

/// The rule: the bytes of the file are those of the drive, whatever their alignment.
#[test]
fn the_file_is_the_drive() {
    let served = Served::mounted(SMALL);
    served.done("head -c 1000003 /dev/urandom > data");
    served.done("dd if=data of=d/drive bs=100003 seek=1 conv=notrunc");
    served.done("cmp data <(tail -c +100004 d/drive | head -c 1000003)");
    let data = served.folder.read("data");
    let client = served.client().read(0, 2 << 20).unwrap();
    assert!(client[100_003..1_100_006] == data && client[..100_003].iter().all(|byte| *byte == 0));
    served.client().write(4_096, &[b'x'; 4_096]).unwrap();
    served.done("cmp <(head -c 8192 d/drive | tail -c 4096) <(yes x | tr -d '\\n' | head -c 4096)");
}

/// The rule: a hole in the file is a trim, which reads as zeros.
#[test]
fn a_hole_is_a_trim() {
    let served = Served::mounted(SMALL);
    let mut expected = b"y\n".repeat(32 << 10);
    served.folder.write("data", &expected);
    served.done("dd if=data of=d/drive conv=notrunc");
    served.done("fallocate -p -o 4096 -l 8192 d/drive; fallocate -p -o 20000 -l 10 d/drive");
    expected[4_096..12_288].fill(0);
    expected[20_000..20_010].fill(0);
    assert!(served.client().read(0, 64 << 10) == Ok(expected));
    let map = served.done("nbdinfo --map \"$uri\" | head -3 | awk '{ print $1, $2, $4 }'");
    assert_eq!(map, "0 4096 data\n4096 8192 hole,zero\n12288 53248 data\n");
}

/// The rule: a write is durable after `fsync`, or at once if the file was opened with `O_DSYNC`.
#[test]
fn fsync_is_a_flush() {
    let served = Served::mounted(SMALL);
    let write = "dd if=/dev/urandom of=d/drive bs=4k count=3 conv=notrunc";
    served.done(write);
    assert_eq!(pages_unflushed(&served), 3);
    served.done(&format!("{write},fsync"));
    assert_eq!(pages_unflushed(&served), 0);
    served.done(&format!("{write} oflag=dsync"));
    assert_eq!(pages_unflushed(&served), 0);
}

/// The rule: without power, every call about the file fails with an error of the drive.
#[test]
fn a_file_without_power_fails() {
    let served = Served::mounted(SMALL);
    served.told("power-cut --stay-off");
    for script in ["head -c 1 d/drive", "dd if=/dev/zero of=d/drive count=1 conv=notrunc", "sync d/drive"] {
        let outcome = served.shell(script);
        assert!(outcome.code == 1 && outcome.stderr.contains("Input/output error"), "{}", outcome.stderr);
    }
    served.told("power-on");
    served.done("head -c 1 d/drive");
    served.told("fill");
    let full = served.shell("dd if=/dev/zero of=d/drive count=1 conv=notrunc");
    assert!(full.code == 1 && full.stderr.contains("No space left on device"), "{}", full.stderr);
}

/// The rule: a program's asynchronous requests reach the drive together, none after the answer to another. Each would
/// take longer than the test has patience.
#[test]
fn asynchronous_requests_are_under_way_together() {
    let folder = Folder::new();
    std::fs::create_dir(folder.0.join("d")).unwrap();
    let served = Served::within(folder, &format!("{SMALL} --fuse d --speed 1x"));
    served.told("slow 100000000");
    let armed = served.cut_at("write:4");
    let writes = "--rw=write --bs=4k --size=16k --iodepth=4 --ioengine=libaio --direct=1";
    served.shell(&format!("fio --name=f --filename=d/drive {writes}"));
    assert_eq!(armed.report()["requests_dropped"], 4);
}
