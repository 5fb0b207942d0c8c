//! Tests a file system on a drive whose power is cut.

use super::drive::Served;
use super::ext4::{Mounted, make};

const VOLATILE: &str = "mem:page=4KiB,pages=8192 --power volatile";

/// A drive that loses nothing, behind a pool of a tenth of its pages that does.
const POOLED: &str = "mem:page=4KiB,pages=8192 --frames 10% --write-back ace:n_w=8";

/// Files to copy.
const TREE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src");

/// The rule: a file system on the drive holds what was copied to it, and is clean after it was unmounted.
#[test]
fn a_file_system_is_clean_after_use() {
    let served = Served::mounted(VOLATILE);
    make(&served);
    let mounted = Mounted::new(&served);
    served.done(&format!("cp -r {TREE} m/tree; sync -f m"));
    drop(mounted);
    served.done("e2fsck -fn d/drive");
    let _mounted = Mounted::new(&served);
    served.done(&format!("diff -r {TREE} m/tree"));
}

/// The rule: after a power cut in the middle of a copy, the journal repairs the file system, and a file that was
/// synced before is there.
#[test]
fn a_journal_survives_a_power_cut() {
    [VOLATILE, POOLED].into_iter().for_each(cut_copies);
}

fn cut_copies(arguments: &str) {
    let served = Served::mounted(arguments);
    make(&served);
    served.told("snapshot empty");
    let mut lost = 0;
    for seed in 1..=3 {
        served.told("restore empty");
        let mounted = Mounted::new(&served);
        served.done("head -c 300001 /dev/urandom > kept; dd if=kept of=m/kept conv=fsync");
        let armed = served.cut_at(&format!("write:{} --stay-off --seed {seed}", 3 * seed));
        served.shell(&format!("cp -r {TREE} m/tree; sync -f m"));
        lost += armed.report()["pages_lost"].as_u64().unwrap();
        drop(mounted);
        served.told("power-on");
        let repaired = served.shell("e2fsck -fy d/drive");
        assert!(repaired.code < 2, "seed {seed}: {}", repaired.stdout);
        let _mounted = Mounted::new(&served);
        served.done("cmp kept m/kept");
    }
    assert!(lost > 0, "no cut has lost anything");
}
