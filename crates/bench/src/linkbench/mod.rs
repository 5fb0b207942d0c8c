//! Implements the LinkBench benchmark (Armstrong et al., "LinkBench: a Database Benchmark Based on the
//! Facebook Social Graph", SIGMOD 2013). Its ten operations, in the shares of the production mix of Armstrong
//! et al., read and change nodes, links between nodes, and the number of links of each node.
//!
//! A link and its count change in one transaction. A deleted link stays in its table and is marked invisible.
//! A list of links is read from a secondary index by time, latest first. The popularity of a node is
//! proportional to a negative power of its rank. The exponent is 0.8 for reads of links, 0.741 for writes of
//! links, 0.625 for reads of nodes and 0.606 for updates of nodes. Payload sizes are log-normal, with a
//! median of 8 bytes for a link and 128 bytes for a node.
//!
//! *Assumptions*, because the measured distributions of the original are not published in a closed form: the
//! number of links of a node has a Pareto distribution of exponent 2; a request for single links names links
//! that the load created, most of which still exist; popular nodes are scattered evenly.

mod config;
mod load;
mod execute;
mod verify;

pub(crate) use config::LinkBenchConfig;
pub use load::{Count, Link};

use crate::benchmark::{Benchmark, Ending};
use crate::codec::{KeyRange, Reader, Row};
use crate::data::Data;
use crate::draw::{between_u32, weighted};
use crate::error::Error;
use crate::recipe::{Recipe, data_text, scaled, stored};
use crate::session::Session;
use config::IDS;
use fulgurite_base::{Prng, SpecError};
use fulgurite_engine::Direction;
use fulgurite_engine::sharded::{Index, Store, Table};
use fulgurite_workload::generate::zipf::ZipfLaw;
use load::{Node, TYPES, link_payload, neighbour, open_index};
use std::cell::Cell;

/// The names of the operations and their shares, in ten thousandths (table 3 of Armstrong et al.).
const MIX: [(&str, u64); 10] = [
    ("get-links-list", 5071),
    ("get-node", 1293),
    ("add-link", 899),
    ("update-link", 801),
    ("update-node", 737),
    ("count-links", 489),
    ("delete-link", 299),
    ("add-node", 257),
    ("delete-node", 101),
    ("get-link", 53),
];
const NAMES: [&str; MIX.len()] = {
    let mut names = [""; MIX.len()];
    let mut index = 0;
    while index < MIX.len() {
        names[index] = MIX[index].0;
        index += 1;
    }
    names
};

/// The most links that one request for single links names, and the probability in thousandths that the
/// request names no further link.
const MULTIGET_MOST: usize = 128;
const MULTIGET_ENDS: u64 = 382;

/// The LinkBench benchmark over a loaded store.
pub struct LinkBench {
    config: LinkBenchConfig,
    laws: Laws,
    node: Table,
    link: Table,
    count: Table,
    by_time: Index,
    /// The id of the next node to insert.
    next: Cell<u64>,
}

/// The distributions of the popularity of nodes, one for each class of operations.
struct Laws {
    link_read: ZipfLaw,
    link_write: ZipfLaw,
    node_read: ZipfLaw,
    node_update: ZipfLaw,
}

/// One operation of LinkBench with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Request {
    GetLinksList { id: u64, kind: u32 },
    GetNode { id: u64 },
    AddLink { id: u64, kind: u32, other: u64, data: String },
    UpdateLink { id: u64, kind: u32, other: u64, data: String },
    UpdateNode { id: u64, data: String },
    CountLinks { id: u64, kind: u32 },
    DeleteLink { id: u64, kind: u32, other: u64 },
    AddNode { id: u64, data: String },
    DeleteNode { id: u64 },
    GetLink { id: u64, kind: u32, others: Vec<u64> },
}

impl LinkBench {
    async fn open(config: &LinkBenchConfig, store: &Store) -> Result<LinkBench, Error> {
        let node = store.table(Node::TABLE).await?;
        let link = store.table(Link::TABLE).await?;
        let count = store.table(Count::TABLE).await?;
        let by_time = open_index(store, link).await?;
        let snapshot = store.snapshot().await;
        let last = snapshot.scan(node, KeyRange::ALL.bounds(), Direction::Backward).next().await?;
        let last = last.map_or(Some(0), |(key, _)| Reader::new(&key).key_u64());
        let last = last.ok_or_else(|| Error::row(Node::TABLE, "has a key of a wrong length"))?;
        let law = |theta| ZipfLaw::new(config.ids, theta);
        let laws = Laws {
            link_read: law(0.8),
            link_write: law(0.741),
            node_read: law(0.625),
            node_update: law(0.606),
        };
        // Ids of deleted nodes are not reused, and the load used the lowest ids, so new ids begin after both.
        let next = Cell::new(last.max(config.ids) + 1);
        Ok(LinkBench { config: *config, laws, node, link, count, by_time, next })
    }

    /// Draws a node by its popularity. Popular nodes are scattered over the ids.
    fn popular(law: &ZipfLaw, prng: &mut Prng) -> u64 {
        law.place(law.rank(prng)) + 1
    }

    /// Draws a node that the load linked with `id`, or a node shortly after the linked ones.
    fn linked(&self, id: u64, prng: &mut Prng) -> u64 {
        neighbour(id, prng.below(u64::from(self.config.links) + 1), self.config.ids)
    }

    fn draw_link(&self, prng: &mut Prng) -> (u64, u32) {
        (Self::popular(&self.laws.link_write, prng), between_u32(prng, 0, TYPES - 1))
    }

    /// Draws a request for single links of one node. The number of links is geometric.
    fn draw_get_link(&self, prng: &mut Prng) -> Request {
        let id = Self::popular(&self.laws.link_read, prng);
        let kind = between_u32(prng, 0, TYPES - 1);
        let mut others = vec![self.linked(id, prng)];
        while others.len() < MULTIGET_MOST && prng.below(1_000) >= MULTIGET_ENDS {
            others.push(self.linked(id, prng));
        }
        Request::GetLink { id, kind, others }
    }
}

impl Benchmark for LinkBench {
    type Request = Request;

    fn kinds(&self) -> &[&'static str] {
        &NAMES
    }

    fn kind(&self, request: &Request) -> usize {
        match request {
            Request::GetLinksList { .. } => 0,
            Request::GetNode { .. } => 1,
            Request::AddLink { .. } => 2,
            Request::UpdateLink { .. } => 3,
            Request::UpdateNode { .. } => 4,
            Request::CountLinks { .. } => 5,
            Request::DeleteLink { .. } => 6,
            Request::AddNode { .. } => 7,
            Request::DeleteNode { .. } => 8,
            Request::GetLink { .. } => 9,
        }
    }

    fn draw(&self, prng: &mut Prng) -> Request {
        let Laws { link_read, node_read, node_update, .. } = &self.laws;
        let kind = |prng: &mut Prng| between_u32(prng, 0, TYPES - 1);
        match weighted(prng, &MIX.map(|(_, share)| share)) {
            0 => Request::GetLinksList { id: Self::popular(link_read, prng), kind: kind(prng) },
            1 => Request::GetNode { id: Self::popular(node_read, prng) },
            2 => {
                let (id, kind) = self.draw_link(prng);
                let other = 1 + prng.below(self.config.ids);
                Request::AddLink { id, kind, other, data: link_payload(prng) }
            }
            3 => {
                let (id, kind) = self.draw_link(prng);
                Request::UpdateLink { id, kind, other: self.linked(id, prng), data: link_payload(prng) }
            }
            4 => {
                let id = Self::popular(node_update, prng);
                Request::UpdateNode { id, data: Node::draw(prng, 0).data }
            }
            5 => Request::CountLinks { id: Self::popular(link_read, prng), kind: kind(prng) },
            6 => {
                let (id, kind) = self.draw_link(prng);
                Request::DeleteLink { id, kind, other: self.linked(id, prng) }
            }
            7 => {
                let id = self.next.replace(self.next.get() + 1);
                Request::AddNode { id, data: Node::draw(prng, 0).data }
            }
            8 => Request::DeleteNode { id: 1 + prng.below(self.config.ids) },
            _ => self.draw_get_link(prng),
        }
    }

    async fn execute(&self, request: &Request, session: &Session) -> Result<Ending, Error> {
        self.carry_out(request, session).await?;
        Ok(Ending::Committed)
    }
}

impl Recipe for LinkBenchConfig {
    type Benchmark = LinkBench;

    fn data(&self) -> String {
        data_text("linkbench", &[("ids", self.ids), ("links", self.links.into())])
    }

    fn bytes(&self) -> u64 {
        let links = self.ids.saturating_mul(u64::from(self.links));
        // The first term covers the nodes with their counts, the second the links of all types with their
        // index entries.
        stored(self.ids, 340).saturating_add(stored(links, 240))
    }

    fn scale(&mut self, scale: u64) -> Result<(), SpecError> {
        self.ids = scaled(scale, IDS)?;
        Ok(())
    }

    async fn load(&self, store: &Store, seed: u64) -> Result<(), Error> {
        load::load(self, store, seed).await
    }

    async fn open(&self, store: &Store, _: &Data) -> Result<LinkBench, Error> {
        LinkBench::open(self, store).await
    }
}
