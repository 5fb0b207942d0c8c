//! Property tests of nodes.

use super::*;
use fulgurite_base::PageId;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn fresh(bytes: &mut [u8], fences: (&[u8], Option<&[u8]>)) {
    NodeMut::init(bytes, PageId(1), 1, 0, fences);
}

fn contents(bytes: &[u8]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let node = Node::new(bytes).expect("a node");
    node.check().expect("a sound node");
    node.records().map(|(key, value)| (key, value.bytes.to_vec())).collect()
}

/// An empty key with an empty value is a record like any other, wherever it is in the heap.
#[test]
fn a_record_of_no_bytes_is_kept() {
    for size in [4096, 65536] {
        let mut bytes = vec![0; size];
        fresh(&mut bytes, (&[], None));
        let mut model = BTreeMap::new();
        let quarter = size / 4;
        // Replacing a value by a longer one leaves garbage. The last long record fits only after the heap is
        // compacted.
        let long = [(&b"a"[..], quarter - 9), (b"a", quarter), (b"b", quarter), (b"c", quarter), (b"d", 9)];
        let empty = [(&b""[..], 0), (b"", 3), (b"", 0)];
        for (key, length) in empty[..1].iter().chain(&long).chain(&empty).copied() {
            let value = vec![7; length];
            assert!(NodeMut::new(&mut bytes).put(key, Cell::inline(&value)));
            model.insert(key.to_vec(), value);
            assert_eq!(contents(&bytes), model);
        }
        NodeMut::new(&mut bytes).remove(0);
        model.remove(&b""[..]);
        assert_eq!(contents(&bytes), model);
    }
}

proptest! {
    /// A node behaves like the map of the standard library. Keys are short and over a small alphabet, so that
    /// heads collide.
    #[test]
    fn a_node_is_a_map(
        operations in prop::collection::vec(
            (prop::collection::vec(0u8..3, 0..9), 0usize..200, 0u8..4), 0..400
        ),
        fenced in any::<bool>(),
    ) {
        let mut bytes = vec![0; 4096];
        let fences: (&[u8], Option<&[u8]>) =
            if fenced { (&[1, 1], Some(&[1, 1, 2, 2])) } else { (&[], None) };
        fresh(&mut bytes, fences);
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        for (key, len, what) in operations {
            let key = if fenced { [&[1, 1][..], &key].concat() } else { key };
            let mut node = NodeMut::new(&mut bytes);
            if !node.node().covers(&key) {
                continue;
            }
            let found = node.node().search(&key);
            prop_assert_eq!(found.is_ok(), model.contains_key(&key));
            prop_assert_eq!(found.unwrap_or_else(|at| at), model.range(..key.clone()).count());
            if what == 0 {
                if let Ok(index) = found {
                    node.remove(index);
                }
                model.remove(&key);
            } else {
                let value = vec![what; len];
                let cost = node.node().cost(key.len(), len);
                let old = model.get(&key).map_or(0, |old| node.node().cost(key.len(), old.len()));
                let fits = node.node().free() + old >= cost;
                prop_assert_eq!(node.put(&key, Cell::inline(&value)), fits);
                if fits {
                    model.insert(key, value);
                }
            }
            prop_assert_eq!(contents(&bytes), model.clone());
        }
    }

    /// A full node always splits into two nodes, so that each of them accepts one more record of the largest
    /// size or can be split again.
    #[test]
    fn a_full_node_divides(sizes in prop::collection::vec(1usize..1200, 3..60), last in 1usize..1280) {
        let mut bytes = vec![0; 4096];
        fresh(&mut bytes, (b"", None));
        let mut node = NodeMut::new(&mut bytes);
        for (index, size) in sizes.iter().enumerate() {
            let key = (index as u32 * 2).to_be_bytes();
            if !node.push(&key, Cell::inline(&vec![1; size.saturating_sub(4)])) {
                break;
            }
        }
        let node = Node::new(&bytes).unwrap();
        prop_assume!(node.len() > 1);
        let at = middle(node, false);
        prop_assert!(at > 0 && at < node.len());
        let separator = separator(&node.key(at - 1), &node.key(at)).to_vec();
        prop_assert!(node.key(at - 1) < separator && separator <= node.key(at));
        for fences in [(&b""[..], Some(&separator[..])), (&separator[..], None)] {
            let mut half = bytes.clone();
            NodeMut::new(&mut half).refence(fences);
            let room = Node::new(&half).unwrap().free();
            let cost = Node::new(&half).unwrap().cost(4, last.saturating_sub(4));
            prop_assert!(room >= cost || Node::new(&half).unwrap().len() > 1, "{room} < {cost}");
        }
    }
}
