//! Defines LinkBench's three tables of nodes, links and counts, and loads them.

use super::config::LinkBenchConfig;
use crate::Error;
use crate::codec::{Key, Reader, Row, row};
use crate::data::load_table;
use crate::draw::{letters, normal};
use fulgurite_base::Prng;
use fulgurite_engine::Extract;
use fulgurite_engine::sharded::{Index, Store, Table};
use std::collections::BTreeSet;
use std::rc::Rc;

/// The number of types of links (`link_type_count` in LinkBench).
pub(super) const TYPES: u32 = 2;

/// The median payload of a node and of a link, and the greatest payload of both, in bytes.
const NODE_BYTES: f64 = 128.0;
const LINK_BYTES: f64 = 8.0;
const BYTES_MOST: f64 = 8192.0;

row! {
    /// A node. The key of the row is the id of the node.
    Node in "node" {
        /// The type of the node.
        kind: u32,
        /// The number of updates of the node since its insertion.
        version: u64,
        /// The time of the last update, in nanoseconds on the device's clock.
        time: u64,
        /// The payload of the node.
        data: String,
    }
}

row! {
    /// A link. The key of the row is the first node, the type of the link and the second node.
    Link in "link" {
        /// Whether the link is visible: 1, or 0 if it was deleted.
        visible: u8,
        /// The number of updates of the link since its insertion.
        version: u32,
        /// The time of the last addition or update, in nanoseconds on the device's clock; random for links of
        /// the load. Lists of links are ordered by this time.
        time: u64,
        /// The payload of the link.
        data: String,
    }
}

row! {
    /// The number of visible outgoing links of a node and a type. The key of the row is the node and the
    /// type.
    Count in "count" {
        /// The number of visible links.
        count: u64,
        /// The number of updates of the count since its insertion.
        version: u64,
    }
}

impl Node {
    pub(super) fn draw(prng: &mut Prng, time: u64) -> Node {
        Node { kind: 0, version: 0, time, data: payload(prng, NODE_BYTES) }
    }
}

/// Returns a payload of a random size, which is log-normal with this median and a sigma of 1.
fn payload(prng: &mut Prng, median: f64) -> String {
    let bytes = (median * libm::exp(normal(prng))).min(BYTES_MOST) as u64;
    letters(prng, bytes, bytes)
}

pub(super) fn link_payload(prng: &mut Prng) -> String {
    payload(prng, LINK_BYTES)
}

/// Draws the number of outgoing links of a node and a type. It has a Pareto distribution of exponent 2, whose
/// mean is twice its least value. So a few nodes have very many links.
fn degree(prng: &mut Prng, config: &LinkBenchConfig) -> u64 {
    // The square root is exact by IEEE 754, so it is the same on every machine. The uniform number is below
    // one, so the difference is positive.
    let tail = (1.0 - prng.unit_f64()).sqrt();
    let drawn = f64::from(config.links) / 2.0 / tail;
    // Rounding to the nearest integer keeps the mean.
    ((drawn + 0.5) as u64).min(10_000).min(config.ids - 1)
}

/// Returns every node and type with its number of links, in the order of the keys. Each call draws the same
/// numbers from the seed.
fn degrees(config: LinkBenchConfig, seed: u64) -> impl Iterator<Item = (u64, u32, u64)> {
    let mut prng = Prng::new(seed, "linkbench degrees");
    (1..=config.ids)
        .flat_map(|id| (0..TYPES).map(move |kind| (id, kind)))
        .map(move |(id, kind)| (id, kind, degree(&mut prng, &config)))
}

/// Returns the `number`th node that the load links with `id`. These are the nodes after `id` in order,
/// continuing at the first node.
pub(super) fn neighbour(id: u64, number: u64, ids: u64) -> u64 {
    (id + number) % ids + 1
}

pub(super) async fn load(config: &LinkBenchConfig, store: &Store, seed: u64) -> Result<(), Error> {
    let config = *config;
    let mut prng = Prng::new(seed, "linkbench nodes");
    let nodes =
        (1..=config.ids).map(|id| (Key::new().u64(id).into_bytes(), Node::draw(&mut prng, 0).encode()));
    load_table(store, Node::TABLE, nodes).await?;
    let mut prng = Prng::new(seed, "linkbench links");
    let links = degrees(config, seed).flat_map(|(id, kind, degree)| {
        // The neighbours are sorted, because those that continue at the first node have smaller ids.
        let nodes: BTreeSet<u64> = (0..degree).map(|number| neighbour(id, number, config.ids)).collect();
        let mut link = |other: u64| {
            let row =
                Link { visible: 1, version: 0, time: prng.below(1 << 20), data: link_payload(&mut prng) };
            (link_key(id, kind, other).into_bytes(), row.encode())
        };
        nodes.into_iter().map(&mut link).collect::<Vec<_>>()
    });
    load_table(store, Link::TABLE, links).await?;
    let counts = degrees(config, seed)
        .filter(|(_, _, degree)| *degree > 0)
        .map(|(id, kind, count)| (count_key(id, kind).into_bytes(), Count { count, version: 0 }.encode()));
    load_table(store, Count::TABLE, counts).await?;
    open_index(store, store.table(Link::TABLE).await?).await?;
    Ok(())
}

pub(super) fn link_key(id: u64, kind: u32, other: u64) -> Key {
    count_key(id, kind).u64(other)
}

pub(super) fn count_key(id: u64, kind: u32) -> Key {
    Key::new().u64(id).u32(kind)
}

/// Opens or creates the index of visible links by node, type and time, through which lists are read.
pub(super) async fn open_index(store: &Store, table: Table) -> Result<Index, Error> {
    let extract: Extract = Rc::new(|key, value, keys| {
        // A row that cannot be decoded gets no index entry. The verification reports such a row.
        if let (Some((id, kind, _)), Ok(link)) = (read_link_key(key), Link::decode(value))
            && link.visible == 1
        {
            keys.push(count_key(id, kind).u64(link.time).into_bytes());
        }
    });
    Ok(store.create_index(table, &format!("{}.time", Link::TABLE), extract).await?)
}

/// Returns the first node, the type and the second node of a link's key; `None` if the key has another form.
pub(super) fn read_link_key(key: &[u8]) -> Option<(u64, u32, u64)> {
    let mut reader = Reader::new(key);
    let fields = (reader.key_u64()?, reader.key_u32()?, reader.key_u64()?);
    reader.is_empty().then_some(fields)
}
