//! Tests of the generated file systems. They read only the request stream, as a recovery after a crash sees
//! only the writes.

use fulgurite_workload::{GeneratorConfig, Op, Request};
use std::collections::BTreeMap;

const PAGES: u64 = 20_000;

fn requests(spec: &str, count: usize) -> Vec<Request> {
    spec.parse::<GeneratorConfig>().unwrap().start(PAGES, 4096, 3).unwrap().take(count).collect()
}

/// The counts of requests to a journal and to home locations.
#[derive(Debug, Default)]
struct Journaled {
    journaled: u64,
    brought_home: u64,
    shares: u64,
}

/// Reads the requests of a file system whose journal has `slots` pages behind the superblock, and counts
/// them.
fn read_journal(spec: &str, slots: u64) -> Journaled {
    // For each slot of the journal, the position of its newest write in the request stream.
    let (mut in_slot, mut shared) = (BTreeMap::new(), None);
    let mut counts = Journaled::default();
    for (at, request) in requests(spec, 200_000).iter().enumerate() {
        assert_eq!((request.op, request.pages), (Op::Write, 1));
        if (1..=slots).contains(&request.page) {
            assert_eq!(request.copy_of, None);
            counts.journaled += 1;
            in_slot.insert(request.page, at);
        } else if request.page > slots {
            counts.brought_home += 1;
            let Some(source) = request.copy_of else { continue };
            counts.shares += 1;
            // A checkpoint processes the journal in its order, so the positions of the shared versions
            // increase. A slot that was overwritten too early would have a version of a later position.
            let version = in_slot.get(&source.number()).copied();
            assert!(version > shared, "{request:?} shares {version:?} after {shared:?}");
            shared = version;
        }
    }
    counts
}

/// The rule: a checkpoint moves each journaled version of a block to its home location exactly once, unless a
/// later transaction in the journal replaces the version. With `share` the version is shared, with `copy` it
/// is written again, and all other requests are the same.
#[test]
fn a_journal_moves_each_block_home_once() {
    for spec in ["journaling:theta=0,transaction=8,journal=1%", "journaling:transaction=8,journal=1%"] {
        let copied = read_journal(spec, 200);
        let shared = read_journal(&format!("{spec},checkpoint=share"), 200);
        assert_eq!(copied.shares, 0);
        assert_eq!(shared.shares, shared.brought_home);
        assert_eq!((copied.journaled, copied.brought_home), (shared.journaled, shared.brought_home));
        // Eight of the ten slots of a transaction are blocks. The blocks that are in the journal at the end
        // are not moved yet.
        let blocks = copied.journaled as f64 * 0.8;
        let came_home = copied.brought_home as f64 / blocks;
        match spec.contains("theta=0") {
            true => {
                assert!(
                    (0.985..=1.0).contains(&came_home),
                    "the share {came_home} of the journaled blocks is moved home"
                )
            }
            // Popular blocks are changed again before their checkpoint, so their older versions are not
            // moved.
            false => assert!((0.7..0.95).contains(&came_home), "{came_home}"),
        }
    }
}

/// Returns the number of written pages and the number of discarded pages. Fails if a page other than
/// `in_place` is written twice without a discard in between.
fn written_and_discarded(spec: &str, in_place: Option<u64>) -> (u64, u64) {
    let (mut full, mut written, mut discarded) = (vec![false; PAGES as usize], 0, 0);
    for request in requests(spec, 300_000) {
        if Some(request.page) == in_place {
            continue;
        }
        let is_full = &mut full[request.page as usize];
        match request.op {
            Op::Trim => {
                discarded += 1;
                *is_full = false;
            }
            _ => {
                assert!(!std::mem::replace(is_full, true), "{spec} writes page {} in place", request.page);
                written += 1;
            }
        }
    }
    (written, discarded)
}

#[test]
fn log_structured_and_copy_on_write_never_write_in_place() {
    for spec in [
        "log-structured:segment=64",
        "log-structured:segment=64,fill=95%,theta=0",
        "log-structured:segment=64,fill=10%",
    ] {
        let (written, discarded) = written_and_discarded(spec, None);
        // Every written page was discarded before, except the pages that were free at the beginning.
        assert!(
            discarded <= written + PAGES && written <= discarded + PAGES,
            "{spec}: {written} {discarded}"
        );
    }
    for spec in
        ["copy-on-write", "copy-on-write:fill=95%,theta=0,transaction=4", "copy-on-write:fanout=2,fill=40%"]
    {
        let (written, discarded) = written_and_discarded(spec, Some(0));
        // A transaction discards as many pages as it writes. The last transaction may be incomplete.
        assert!((0..=1_000).contains(&(written - discarded)), "{spec}: {written} {discarded}");
    }
}

/// The test compares the number of writes for each changed block with a closed form.
#[test]
fn a_change_costs_the_writes_of_its_path() {
    // A transaction of one change writes the block, a node of each level above the 16,000 blocks (160, 2 and
    // 1 nodes), and the superblock.
    let spec = "copy-on-write:transaction=1";
    let writes = requests(spec, 90_000).iter().filter(|request| request.op == Op::Write).count();
    assert_eq!(writes, 90_000 / 9 * 5);
}

/// The rule: cleaning neither loses pages nor begins too early. So the pages that are written and not
/// discarded fill the pages that were free at the beginning, except the reserved and the open segments.
#[test]
fn cleaning_keeps_as_few_segments_free_as_it_needs() {
    let requests = requests("log-structured:fill=2%,theta=0,segment=64", 100_000);
    let writes = requests.iter().filter(|request| request.op == Op::Write).count();
    let filled = writes - (requests.len() - writes);
    let free = PAGES as usize * 98 / 100;
    assert!((free - 8 * 64..=free).contains(&filled), "{filled} of {free}");
}

/// Reads the requests of an append-only store and checks the rules of a recovery: a page is written once
/// before it is discarded, files are appended to in order, and the source of a share is in the other file and
/// not discarded. Returns the number of compactions, and the numbers of writes and of shares.
fn read_append_only(spec: &str) -> (u64, [u64; 2]) {
    let half = PAGES / 2;
    let (mut next, mut file, mut compactions, mut counts) = ([0, 0], None, 0, [0, 0]);
    for request in requests(spec, 400_000) {
        let (of, at) = ((request.page / half) as usize, request.page % half);
        if request.op == Op::Trim {
            assert_ne!(file, Some(of), "the file in use is discarded");
            next[of] = 0;
            continue;
        }
        if file != Some(of) {
            // The first requests continue a file that exists already, so they do not begin at its first page.
            compactions += u64::from(file.is_some());
            next[of] = if file.is_none() { at } else { 0 };
            file = Some(of);
        }
        assert_eq!(at, next[of], "{spec} appends");
        next[of] = at + 1;
        counts[usize::from(request.copy_of.is_some())] += 1;
        if let Some(source) = request.copy_of {
            assert_eq!((source.number() / half) as usize, 1 - of);
        }
    }
    (compactions, counts)
}

/// The rule: a compaction moves each document to the new file exactly once, by a write or by a share as
/// configured, and writes the tree anew.
#[test]
fn a_compaction_moves_each_document_once() {
    for (spec, documents) in [("append-only", 7_000), ("append-only:fill=20%,theta=0,transaction=1", 2_000)] {
        let (copied, [copies, none]) = read_append_only(spec);
        let (shared, [writes, shares]) =
            read_append_only(&format!("{spec},compaction=share").replacen("only,", "only:", 1));
        assert_eq!((copied, none), (shared, 0));
        assert!(shared >= 10, "{shared}");
        // The last compaction may be incomplete, so it moves at most all documents.
        assert!(
            (documents * (shared - 1)..=documents * shared).contains(&shares),
            "{spec}: {shares} in {shared}"
        );
        assert_eq!(copies, writes + shares);
    }
}

#[test]
fn spaces_that_are_too_small_are_refused() {
    let sentence = |spec: &str, pages| {
        spec.parse::<GeneratorConfig>().unwrap().start(pages, 4096, 3).unwrap_err().to_string()
    };
    assert!(sentence("journaling:journal=0%", PAGES).contains("cannot hold a transaction of 32 changes"));
    assert!(sentence("journaling:journal=1%,transaction=4K", PAGES).contains("at least 4002 pages"));
    assert!(sentence("log-structured:fill=95%", 4_000).contains("too few segments of 62 pages"));
    assert!(sentence("copy-on-write:fill=95%,transaction=4K", PAGES).contains("smaller fill="));
    assert!(sentence("append-only:fill=95%,transaction=1K", PAGES).contains("smaller fill="));
    for name in ["journaling", "log-structured", "copy-on-write", "append-only"] {
        assert!(sentence(name, 999).contains("accepted: 1000 to 2^32"), "{name}");
    }
}
