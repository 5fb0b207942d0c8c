//! Finds the circles and an order of a small graph. Its nodes are numbers, and an edge means that the first
//! node imports from the second.

use std::collections::BTreeSet;

/// Returns the strongly connected components of more than one node, ordered by their first nodes.
pub(super) fn circles(nodes: usize, edges: &BTreeSet<(usize, usize)>) -> Vec<Vec<usize>> {
    let reached: Vec<BTreeSet<usize>> = (0..nodes).map(|node| reached_from(node, edges)).collect();
    let mut circles = Vec::new();
    let mut placed = BTreeSet::new();
    for node in 0..nodes {
        let circle: Vec<usize> =
            reached[node].iter().copied().filter(|&other| reached[other].contains(&node)).collect();
        if circle.len() > 1 && placed.insert(circle[0]) {
            circles.push(circle);
        }
    }
    circles
}

fn reached_from(start: usize, edges: &BTreeSet<(usize, usize)>) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut ahead = vec![start];
    while let Some(node) = ahead.pop() {
        for &(_, next) in edges.range((node, 0)..=(node, usize::MAX)) {
            if reached.insert(next) {
                ahead.push(next);
            }
        }
    }
    reached
}

/// Returns an order in which each node follows those that it imports from. If several nodes can be next, the
/// lowest number is. The graph must not have circles.
pub(super) fn order(nodes: usize, edges: &BTreeSet<(usize, usize)>) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    let mut left: Vec<usize> = (0..nodes).collect();
    let has_import_in = |node: usize, left: &[usize]| {
        edges.range((node, 0)..=(node, usize::MAX)).any(|(_, to)| *to != node && left.contains(to))
    };
    while let Some(next) = left.iter().position(|&node| !has_import_in(node, &left)) {
        order.push(left.remove(next));
    }
    order
}
