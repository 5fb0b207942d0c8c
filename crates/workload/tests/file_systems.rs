//! What file systems write, checked by a reader of the traffic alone: what a crash at any point would find.

use fulgurite_workload::{GeneratorConfig, Op, Request};
use std::collections::BTreeMap;

const PAGES: u64 = 20_000;

fn requests(spec: &str, count: usize) -> Vec<Request> {
    spec.parse::<GeneratorConfig>().unwrap().start(PAGES, 4096, 3).unwrap().take(count).collect()
}

/// What was counted while reading a journal's traffic.
#[derive(Debug, Default)]
struct Journaled {
    journaled: u64,
    brought_home: u64,
    shares: u64,
}

/// Reads the traffic of a journal of `slots` pages, which lie behind the superblock.
fn read_journal(spec: &str, slots: u64) -> Journaled {
    // The version that each slot holds: its place in the traffic.
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
            // Checkpoints go through the journal in its order. A slot that was written again too early holds a version
            // that comes later.
            let version = in_slot.get(&source.number()).copied();
            assert!(version > shared, "{request:?} shares {version:?} after {shared:?}");
            shared = version;
        }
    }
    counts
}

/// The rules: a block comes home once for each time that it is journaled and not changed again in the journal; under
/// `share` each block comes home by a share, under `copy` by a write; both make the same requests otherwise.
#[test]
fn a_journal_brings_each_block_home_once_by_what_was_declared() {
    for spec in ["journaling:theta=0,transaction=8,journal=1%", "journaling:transaction=8,journal=1%"] {
        let copied = read_journal(spec, 200);
        let shared = read_journal(&format!("{spec},checkpoint=share"), 200);
        assert_eq!(copied.shares, 0);
        assert_eq!(shared.shares, shared.brought_home);
        assert_eq!((copied.journaled, copied.brought_home), (shared.journaled, shared.brought_home));
        // Ten slots have eight blocks. What is in the journal at the end has not come home.
        let blocks = copied.journaled as f64 * 0.8;
        let came_home = copied.brought_home as f64 / blocks;
        match spec.contains("theta=0") {
            true => {
                assert!((0.985..=1.0).contains(&came_home), "of 1,000 changes {came_home} meet the journal")
            }
            // Popular blocks are changed again before their turn.
            false => assert!((0.7..0.95).contains(&came_home), "{came_home}"),
        }
    }
}

/// Pages written, and discarded; no page is written twice without being discarded in between, but page 0.
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
fn nothing_is_written_in_place_where_that_is_the_promise() {
    for spec in [
        "log-structured:segment=64",
        "log-structured:segment=64,fill=95%,theta=0",
        "log-structured:segment=64,fill=10%",
    ] {
        let (written, discarded) = written_and_discarded(spec, None);
        // Every page that is written was discarded before, but those that were free at first.
        assert!(
            discarded <= written + PAGES && written <= discarded + PAGES,
            "{spec}: {written} {discarded}"
        );
    }
    for spec in
        ["copy-on-write", "copy-on-write:fill=95%,theta=0,transaction=4", "copy-on-write:fanout=2,fill=40%"]
    {
        let (written, discarded) = written_and_discarded(spec, Some(0));
        // A transaction discards as many as it writes; the last one may be incomplete.
        assert!((0..=1_000).contains(&(written - discarded)), "{spec}: {written} {discarded}");
    }
}

/// Pages written per changed block, where a closed form says how many there must be.
#[test]
fn a_change_costs_the_writes_of_its_path() {
    // One change at a time: the block, a node at each of the levels above 16,000 blocks (160, 2, 1), the superblock.
    let spec = "copy-on-write:transaction=1";
    let writes = requests(spec, 90_000).iter().filter(|request| request.op == Op::Write).count();
    assert_eq!(writes, 90_000 / 9 * 5);
}

/// The rule: what is written and not discarded fills the pages that were free at first, but for the reserve and the open
/// segments; so cleaning neither loses pages nor begins too early.
#[test]
fn cleaning_keeps_as_few_segments_free_as_it_needs() {
    let requests = requests("log-structured:fill=2%,theta=0,segment=64", 100_000);
    let writes = requests.iter().filter(|request| request.op == Op::Write).count();
    let filled = writes - (requests.len() - writes);
    let free = PAGES as usize * 98 / 100;
    assert!((free - 8 * 64..=free).contains(&filled), "{filled} of {free}");
}

/// Reads the traffic of an append-only store, and checks what a crash would find: a page is written once before it is
/// discarded, files are appended to in order, and a share's source is in the other file and not discarded. Returns the
/// compactions, and requests by kind: writes, shares.
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
            // The first requests go on in a file that is there already.
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

/// The rule: a compaction brings each document to the new file once, by what was declared, and writes the tree.
#[test]
fn a_compaction_brings_each_document_once_by_what_was_declared() {
    for (spec, documents) in [("append-only", 7_000), ("append-only:fill=20%,theta=0,transaction=1", 2_000)] {
        let (copied, [copies, none]) = read_append_only(spec);
        let (shared, [writes, shares]) =
            read_append_only(&format!("{spec},compaction=share").replacen("only,", "only:", 1));
        assert_eq!((copied, none), (shared, 0));
        assert!(shared >= 10, "{shared}");
        // The last compaction may be incomplete.
        assert!(
            (documents * (shared - 1)..=documents * shared).contains(&shares),
            "{spec}: {shares} in {shared}"
        );
        assert_eq!(copies, writes + shares);
    }
}

#[test]
fn what_has_no_room_is_refused_with_what_has() {
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
