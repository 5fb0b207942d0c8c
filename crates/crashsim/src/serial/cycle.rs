//! Finds the shortest cycle of the most severe kind in a graph of dependencies, and names the anomaly.

use super::anomaly::{Anomaly, AnomalyName};
use super::graph::{Edge, Why};
use super::observe::Observed;
use crate::history::History;
use std::collections::VecDeque;

/// The kinds of dependencies that a cycle may contain.
#[derive(Clone, Copy)]
struct Kinds {
    wr: bool,
    /// The number of rw dependencies that are allowed: none, one, or any number.
    rw: Rw,
    rt: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Rw {
    None,
    One,
    Any,
}

/// The kinds of cycles, the most severe first: whether wr dependencies are allowed, and how many rw
/// dependencies.
const KINDS: [(bool, Rw); 4] = [(false, Rw::None), (true, Rw::None), (true, Rw::One), (true, Rw::Any)];

/// Names the most severe anomaly among `edges`, which contain a cycle. The text of the anomaly shows the
/// shortest cycle of its kind.
pub(super) fn explain(history: &History, observed: &Observed, edges: &[Edge]) -> Anomaly {
    for rt in [false, true] {
        for (wr, rw) in KINDS {
            let kinds = Kinds { wr, rw, rt };
            if let Some(cycle) = shortest(observed.nodes.len(), edges, kinds) {
                let text = describe(history, observed, &cycle);
                return Anomaly { name: name(&cycle), realtime: rt, text };
            }
        }
    }
    // This is not reached: the caller knows of a cycle, so one of the kinds above must have found it.
    Anomaly { name: AnomalyName::G2, realtime: true, text: "no order of the transactions fits".to_owned() }
}

fn shortest(nodes: usize, edges: &[Edge], kinds: Kinds) -> Option<Vec<Edge>> {
    let plain = |edge: &&Edge| match edge.why {
        Why::Ww(_) => true,
        Why::Wr(_) => kinds.wr,
        Why::Rw(..) => kinds.rw == Rw::Any,
        Why::Rt => kinds.rt,
    };
    let mut from: Vec<Vec<Edge>> = vec![Vec::new(); nodes];
    for edge in edges.iter().filter(plain) {
        from[edge.from as usize].push(*edge);
    }
    let mut best: Option<Vec<Edge>> = None;
    for node in 0..nodes as u32 {
        // Decides which edge may be the last one of the cycle: the rw edge if exactly one is allowed,
        // otherwise any edge.
        let closes = |edge: &&Edge| match kinds.rw {
            Rw::One => matches!(edge.why, Why::Rw(..)),
            Rw::None | Rw::Any => plain(edge),
        };
        let starts: Vec<&Edge> = edges.iter().filter(|edge| edge.to == node).filter(closes).collect();
        if starts.is_empty() {
            continue;
        }
        let paths = breadth_first(&from, node);
        for start in starts {
            let Some(mut cycle) = path(&paths, node, start.from) else { continue };
            cycle.push(*start);
            if best.as_ref().is_none_or(|best| cycle.len() < best.len()) {
                best = Some(cycle);
            }
        }
    }
    best
}

/// Returns, for each node, the edge through which a breadth-first search from `start` reaches it.
fn breadth_first(from: &[Vec<Edge>], start: u32) -> Vec<Option<Edge>> {
    let mut reached = vec![None; from.len()];
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for edge in &from[node as usize] {
            if edge.to != start && reached[edge.to as usize].is_none() {
                reached[edge.to as usize] = Some(*edge);
                queue.push_back(edge.to);
            }
        }
    }
    reached
}

/// Returns the edges of the path from `start` to `end`; the path is empty if the two are equal, and `None` if
/// there is no path.
fn path(reached: &[Option<Edge>], start: u32, end: u32) -> Option<Vec<Edge>> {
    let mut edges = Vec::new();
    let mut node = end;
    while node != start {
        let edge = reached[node as usize]?;
        edges.push(edge);
        node = edge.from;
    }
    edges.reverse();
    Some(edges)
}

fn name(cycle: &[Edge]) -> AnomalyName {
    let rw = cycle.iter().filter(|edge| matches!(edge.why, Why::Rw(..))).count();
    let scans = cycle.iter().any(|edge| matches!(edge.why, Why::Rw(_, true)));
    let same_item = match cycle {
        [Edge { why: Why::Rw(a, _), .. }, Edge { why: Why::Rw(b, _), .. }] => a == b,
        _ => false,
    };
    match rw {
        _ if same_item => AnomalyName::LostUpdate,
        0 if cycle.iter().any(|edge| matches!(edge.why, Why::Wr(_))) => AnomalyName::G1c,
        0 => AnomalyName::G0,
        1 => AnomalyName::GSingle,
        _ if scans => AnomalyName::G2,
        _ => AnomalyName::G2Item,
    }
}

fn describe(history: &History, observed: &Observed, cycle: &[Edge]) -> String {
    let id = |node: u32| history.txns[observed.nodes[node as usize]].id;
    let key = |item: u32| observed.items[item as usize].key;
    let steps: Vec<String> = cycle
        .iter()
        .map(|edge| {
            let [from, to] = [edge.from, edge.to].map(id);
            match edge.why {
                Why::Ww(item) => format!("{to} wrote {} over {from} (ww)", key(item)),
                Why::Wr(item) => format!("{to} read {} from {from} (wr)", key(item)),
                Why::Rw(item, false) => format!("{from} read {} before {to} wrote it (rw)", key(item)),
                Why::Rw(item, true) => format!("{from} scanned {} before {to} wrote it (rw)", key(item)),
                Why::Rt => format!("{from} had ended when {to} began (rt)"),
            }
        })
        .collect();
    steps.join("; ")
}
