//! Dependencies between transactions, with what can be reached from where.

use super::observe::Node;

/// Why one transaction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Its version of this item is earlier.
    Ww(u32),
    /// Its version of this item was read.
    Wr(u32),
    /// It read an earlier version of this item; the flag says that a scan did.
    Rw(u32, bool),
    /// It had ended when the other began.
    Rt,
}

/// One dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub from: Node,
    pub to: Node,
    pub why: Why,
}

/// A graph that keeps its transitive closure.
#[derive(Clone)]
pub(super) struct Graph {
    nodes: usize,
    words: usize,
    /// A row of bits for each node: what can be reached from it.
    reach: Vec<u64>,
    pub edges: Vec<Edge>,
    /// Whether there is a cycle.
    pub cyclic: bool,
}

impl Graph {
    pub fn new(nodes: usize) -> Graph {
        let words = nodes.div_ceil(64);
        Graph { nodes, words, reach: vec![0; nodes * words], edges: Vec::new(), cyclic: false }
    }

    /// Whether `to` can be reached from `from` over at least one edge.
    #[inline]
    pub fn reaches(&self, from: Node, to: Node) -> bool {
        self.reach[from as usize * self.words + to as usize / 64] >> (to % 64) & 1 == 1
    }

    /// Adds an edge and what follows from it.
    pub fn add(&mut self, from: Node, to: Node, why: Why) {
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
