//! Property tests of decoders: data with a valid checksum and invalid contents makes no decoder panic.

use crate::format::index_entry::Coding;
use crate::format::large_value::LargeValue;
use crate::format::layout::{FORMAT, SUPERBLOCK, Superblock};
use crate::format::log_block::{Block, HEADER};
use crate::format::log_record::{Delta, Entry};
use crate::format::page::node::{Cell, Node, NodeMut, middle};
use crate::format::page::{self, Kind, Salt, map, set};
use crate::memory::catalogue::Catalogue;
use crate::{Error, Lsn};
use fulgurite_base::PageId;
use proptest::prelude::*;

/// Generates changes of single bytes: the position of each byte, anywhere or near the beginning, and its new
/// value.
fn changes() -> impl Strategy<Value = Vec<(usize, u8)>> {
    let place = prop_oneof![0usize..4096, 36usize..200];
    prop::collection::vec((place, any::<u8>()), 0..12)
}

fn keys() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u8>)>> {
    let key = prop::collection::vec(0u8..4, 0..10);
    prop::collection::vec((key, prop::collection::vec(any::<u8>(), 0..80)), 0..60)
}

/// Creates a node with some records, and then damages its bytes.
fn node(level: u8, records: &[(Vec<u8>, Vec<u8>)], changes: &[(usize, u8)]) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let mut node = NodeMut::init(&mut bytes, PageId(9), 4, level, (b"\0", Some(b"\x03")));
    for (key, value) in records.iter().filter(|(key, _)| &key[..] >= b"\0" && &key[..] < b"\x03") {
        let value = if level > 0 { &[7; 8][..] } else { value };
        node.put(key, Cell::inline(value));
    }
    if level > 0 {
        node.put(b"\0", Cell::inline(&[7; 8]));
    }
    changes.iter().for_each(|(at, byte)| bytes[*at] = *byte);
    bytes
}

/// Calls every method that must work on a valid node.
fn use_node(bytes: &[u8], records: &[(Vec<u8>, Vec<u8>)]) {
    let node = Node::new(bytes).expect("a node");
    let all: Vec<_> = node.records().collect();
    for (index, (key, _)) in all.iter().enumerate() {
        assert_eq!(node.search(key), Ok(index), "a sound node finds its own records");
        if node.level() > 0 {
            let _ = (node.child(index), node.child_for(key));
        }
    }
    let _ = (node.free(), node.used(), node.prefix(), node.parts());
    if all.len() > 1 {
        let at = middle(node, false);
        assert!(at > 0 && at < all.len());
    }
    let mut copy = bytes.to_vec();
    for (key, value) in records.iter().filter(|(key, _)| node.covers(key)) {
        let mut changed = NodeMut::new(&mut copy);
        changed.put(key, Cell::inline(value));
        if let Ok(index) = changed.node().search(key) {
            changed.remove(index);
        }
    }
    if let (Some(middle), true) = (all.get(all.len() / 2), all.len() > 1) {
        let (low, mut half) = (node.low().to_vec(), bytes.to_vec());
        if middle.0 > low {
            NodeMut::new(&mut half).refence((&low, Some(&middle.0)));
        }
    }
}

/// Returns a valid superblock.
pub(crate) fn sound_superblock() -> Superblock {
    Superblock {
        format: FORMAT,
        generation: 3,
        page_bytes: 4096,
        block_bytes: 4096,
        pages: 4096,
        log_pages: 512,
        double_write_pages: 128,
        redo: Lsn(77),
        log_end: Lsn(8192),
        log_crc: 5,
        clean: true,
        next_large: 9,
        identity: 1 << 100,
        out_of_place: None,
    }
}

fn deltas() -> impl Strategy<Value = Delta> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..300).prop_map(Vec::into_boxed_slice);
    let key = || prop::collection::vec(0u8..5, 0..12).prop_map(Vec::into_boxed_slice);
    let page = PageId(9);
    prop_oneof![
        bytes().prop_map(move |node| Delta::Image { page, node }),
        (keys(), changes()).prop_map(move |(records, changes)| match Delta::image(&node(0, &records, &[])) {
            Delta::Image { mut node, .. } => {
                let len = node.len();
                changes.iter().for_each(|(at, byte)| node[at % len] = *byte);
                Delta::Image { page, node }
            }
            other => other,
        }),
        prop_oneof![bytes(), key()].prop_map(move |high| Delta::Keep { page, high }),
        (prop_oneof![bytes(), key()], any::<u64>()).prop_map(move |(key, child)| Delta::AddChild {
            page,
            key,
            child: PageId(child)
        }),
        prop_oneof![bytes(), key()].prop_map(move |key| Delta::DropChild { page, key }),
        Just(Delta::Free { page }),
        Just(Delta::Stored { page }),
        (any::<u32>(), any::<u32>(), any::<bool>()).prop_map(move |(from, count, used)| Delta::Map {
            page,
            from,
            count,
            used
        }),
    ]
}

proptest! {
    #[test]
    fn a_node_that_passes_can_be_used(
        level in 0u8..3, records in keys(), changes in changes(), more in keys(),
    ) {
        let bytes = node(level, &records, &changes);
        if let Some(node) = Node::new(&bytes) && node.check().is_ok() {
            use_node(&bytes, &more);
        }
    }

    #[test]
    fn any_page_is_checked_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 4096), kind in 0u8..6) {
        let mut bytes = bytes;
        bytes[4] = kind;
        bytes[5] %= 3;
        let _ = page::fault(&bytes);
    }

    #[test]
    fn sizes_of_a_valid_superblock_do_not_overflow(
        numbers in prop::collection::vec(
            (0usize..11, prop_oneof![Just(0), 0u64..10_000, any::<u64>(), Just(u64::MAX)]), 0..4
        ),
    ) {
        let mut bytes = sound_superblock().encode().to_vec();
        for (place, number) in numbers {
            set(&mut bytes, 24 + 8 * place, &number.to_le_bytes());
        }
        set(&mut bytes, 16, &[0; 4]);
        let crc = crc32c::crc32c(&bytes[..SUPERBLOCK]);
        set(&mut bytes, 16, &crc.to_le_bytes());
        match Superblock::decode(&bytes) {
            Ok(superblock) => {
                prop_assert!(superblock.large_root().0 < superblock.pages);
                let _ = superblock.log_pages * u64::from(superblock.page_bytes) / u64::from(superblock.block_bytes);
            }
            Err(error) => {
                let refused = matches!(error, Error::Corrupt { .. });
                prop_assert!(refused, "{error}");
            }
        }
    }

    #[test]
    fn sizes_of_a_valid_superblock_out_of_place_do_not_overflow(
        unit in prop_oneof![0u8..24, any::<u8>()],
        pages in prop_oneof![200u64..5_000, any::<u64>()],
        [segments, segment_units] in prop::array::uniform2(prop_oneof![
            Just(0u32), 1u32..600, (0u32..32).prop_map(|power| 1 << power), any::<u32>()
        ]),
        sizes in prop::array::uniform2(12u32..21),
    ) {
        let mut bytes = sound_superblock().encode().to_vec();
        (bytes[85], bytes[86]) = (1, unit);
        set(&mut bytes, 24, &(1u32 << sizes[0]).to_le_bytes());
        set(&mut bytes, 28, &(1u32 << sizes[1]).to_le_bytes());
        set(&mut bytes, 40, &pages.to_le_bytes());
        set(&mut bytes, 112, &segments.to_le_bytes());
        set(&mut bytes, 116, &segment_units.to_le_bytes());
        set(&mut bytes, 16, &[0; 4]);
        let crc = crc32c::crc32c(&bytes[..SUPERBLOCK]);
        set(&mut bytes, 16, &crc.to_le_bytes());
        match Superblock::decode(&bytes) {
            Ok(superblock) => {
                let layout = superblock.layout().expect("pages lie out of place");
                prop_assert!((512..=superblock.block_bytes).contains(&layout.unit_bytes));
                prop_assert!(layout.end() == superblock.bytes() && superblock.map_memory() > 0);
            }
            Err(error) => {
                let refused = matches!(error, Error::Corrupt { .. });
                prop_assert!(refused, "{error}");
            }
        }
    }

    #[test]
    fn any_block_is_read(
        bytes in prop::collection::vec(any::<u8>(), 4096), used in any::<u32>(), magic in any::<bool>(),
    ) {
        let mut bytes = bytes;
        if magic {
            set(&mut bytes, 4, b"FLOG");
        }
        set(&mut bytes, 28, &used.to_le_bytes());
        page::seal(&mut bytes, Salt(5));
        if let Some((block, _)) = Block::read(&bytes, false, Salt(5)) {
            prop_assert!(block.used as usize <= 4096 - HEADER);
        }
    }

    #[test]
    fn any_record_is_read(payload in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Entry::read(&payload);
        // The part of a record in a transaction of several shards is behind two empty lists.
        let _ = Entry::read(&[&[0, 0, payload.len() as u8 % 6][..], &payload].concat());
        let _ = LargeValue::read(&payload);
        let _ = [Coding::Single, Coding::Runs].map(|coding| coding.split(&payload));
        let mut catalogue = Catalogue::new(PageId(1), PageId(2));
        let _ = catalogue.add(&payload, &payload[..payload.len().min(17)]);
    }

    /// A structure change that does not apply to a page is either refused, or leaves a valid page.
    #[test]
    fn any_structure_change_is_done_or_refused(
        level in 0u8..2, records in keys(), deltas in prop::collection::vec(deltas(), 1..5), on_map in any::<bool>(),
    ) {
        let mut bytes = node(level, &records, &[]);
        if on_map {
            page::init(&mut bytes, Kind::Map, 0, PageId(9), 0);
        }
        for delta in deltas {
            if delta.apply(&mut bytes).is_err() || page::fault(&bytes).is_some() {
                break;
            }
            if page::kind(&bytes) == Some(Kind::Map) {
                let _ = (map::first_free(&bytes, 0, 32256), map::count_used(&bytes, 32256));
            }
        }
    }
}

#[test]
#[ignore = "measures; run it by hand in a release build"]
fn cost_of_checking_a_node() {
    // Take the minimum of many rounds, because other programs disturb single rounds.
    let round = |f: &dyn Fn() -> bool| {
        #[allow(clippy::disallowed_types, clippy::disallowed_methods)] // a measurement
        let begin = std::time::Instant::now();
        assert!((0..2_000).all(|_| std::hint::black_box(f)()));
        begin.elapsed().as_nanos() / 2_000
    };
    let time = |what: &str, f: &dyn Fn() -> bool| {
        println!("{what}: {:?} ns", (0..50).map(|_| round(f)).min());
    };
    for records in [34u32, 200] {
        let mut bytes = vec![0; 4096];
        let mut node = NodeMut::init(&mut bytes, PageId(9), 4, 0, (b"", None));
        for number in 0..records {
            let value = vec![1; if records > 100 { 4 } else { 90 }];
            assert!(node.put(&number.to_be_bytes(), Cell::inline(&value)));
        }
        page::seal(&mut bytes, Salt(5));
        time(&format!("checksum, {records} records"), &|| page::is_whole(&bytes, PageId(9), Salt(5)));
        time(&format!("look, {records} records"), &|| page::fault(&bytes).is_none());
    }
}
