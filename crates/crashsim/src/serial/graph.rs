//! Holds the graph of dependencies between transactions, with its transitive closure.

use super::observe::Node;

/// The reason why one transaction precedes another; see [`crate::serial`] for the kinds of dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The first transaction wrote an earlier version of this item than the second one.
    Ww(u32),
    /// The second transaction read the version of this item that the first one wrote.
    Wr(u32),
    /// The first transaction read an earlier version of this item than the second one wrote. The flag says
    /// whether it read by a scan.
    Rw(u32, bool),
    /// The first transaction ended before the second one began.
    Rt,
}

/// A dependency: the transaction `from` precedes the transaction `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub from: Node,
    pub to: Node,
    pub why: Why,
}

/// A graph of dependencies with its transitive closure.
#[derive(Clone)]
pub(super) struct Graph {
    nodes: usize,
    words: usize,
    /// The transitive closure: one row of bits per node, with a bit for each node that can be reached from
    /// it.
    reach: Vec<u64>,
    pub edges: Vec<Edge>,
    /// Whether the graph has a cycle.
    pub cyclic: bool,
}

impl Graph {
    pub(super) fn new(nodes: usize) -> Graph {
        let words = nodes.div_ceil(64);
        Graph { nodes, words, reach: vec![0; nodes * words], edges: Vec::new(), cyclic: false }
    }

    /// Whether there is a path of at least one edge from `from` to `to`.
    #[inline]
    pub(super) fn reaches(&self, from: Node, to: Node) -> bool {
        self.reach[from as usize * self.words + to as usize / 64] >> (to % 64) & 1 == 1
    }

    /// Adds an edge and updates the transitive closure.
    pub(super) fn add(&mut self, from: Node, to: Node, why: Why) {
        self.edges.push(Edge { from, to, why });
        self.cyclic |= from == to || self.reaches(to, from);
        if self.reaches(from, to) {
            return;
        }
        let start = to as usize * self.words;
        let mut gained: Vec<u64> = self.reach[start..start + self.words].to_vec();
        gained[to as usize / 64] |= 1 << (to % 64);
        for node in 0..self.nodes as Node {
            if node == from || self.reaches(node, from) {
                let start = node as usize * self.words;
                for (word, gained) in self.reach[start..start + self.words].iter_mut().zip(&gained) {
                    *word |= gained;
                }
            }
        }
    }
}
