//! A slow, obvious model of power cuts. It lists the changes, tries every subset, leaves out those that the rules
//! forbid, and makes the changes of the others one after the other.

use crate::script::{BLOCK, inode, place};
use fulgurite_folder::{Folder, Kind, Model, ROOT, Rules};
use std::collections::{BTreeMap, BTreeSet};

/// A file or a folder. Blocks that are missing are zero.
#[derive(Clone, Default)]
struct Node {
    is_folder: bool,
    mode: u32,
    size: u64,
    blocks: BTreeMap<u64, u8>,
}

/// Everything that a folder holds.
#[derive(Clone, Default)]
struct State {
    names: BTreeMap<(u64, String), u64>,
    nodes: BTreeMap<u64, Node>,
}

/// A change that is kept or lost as a whole.
enum Unit {
    /// Names, the folder that it creates, the folder that it removes, whether it moves a folder, and the file whose
    /// bytes it needs.
    Names {
        names: Vec<(u64, String, Option<u64>)>,
        creates: Option<u64>,
        removes: Option<u64>,
        moves: bool,
        needs: Option<u64>,
    },
    /// A size in blocks, and the bytes of the last block if they are part of the change.
    Size {
        file: u64,
        from: u64,
        to: u64,
        value: Option<u8>,
        by_write: bool,
    },
    Mode {
        node: u64,
        mode: u32,
    },
    Bytes {
        file: u64,
        block: u64,
        value: u8,
    },
}

impl Unit {
    fn is_ordered(&self) -> bool {
        matches!(self, Unit::Names { .. } | Unit::Mode { .. } | Unit::Size { by_write: false, .. })
    }

    fn is_in(&self, folder: u64) -> bool {
        matches!(self, Unit::Names { names, .. } if names.iter().any(|(parent, ..)| *parent == folder))
    }

    /// The inode whose size or mode it changes.
    fn attribute_of(&self) -> Option<u64> {
        match self {
            Unit::Size { file, .. } => Some(*file),
            Unit::Mode { node, .. } => Some(*node),
            _ => None,
        }
    }

    fn size_of(&self) -> Option<u64> {
        match self {
            Unit::Size { file, .. } => Some(*file),
            _ => None,
        }
    }

    fn bytes_of(&self) -> Option<u64> {
        match self {
            Unit::Bytes { file, .. } => Some(*file),
            _ => None,
        }
    }
}

/// The contents at the last point without losable changes, and the changes since.
pub(crate) struct Changes {
    rules: Rules,
    start: State,
    live: State,
    units: Vec<(Unit, bool)>,
}

impl Changes {
    /// Begins with the contents of a folder in which nothing is losable.
    pub(crate) fn new(folder: &Folder) -> Changes {
        let mut start = State::default();
        copy(folder, ROOT, &mut start);
        Changes { rules: *folder.rules(), live: start.clone(), start, units: Vec::new() }
    }

    /// The number of changes that are losable by themselves.
    pub(crate) fn losable(&self) -> usize {
        self.units.iter().filter(|(_, is_synced)| !is_synced).count()
    }

    /// Adds an operation that has changed the folder `before` to `after`.
    pub(crate) fn add(&mut self, before: &Folder, after: &Folder, operation: &str) {
        let words: Vec<&str> = operation.split_whitespace().collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        let name = |path: &str, inode| {
            let (folder, name) = place(before, path).unwrap();
            (folder, String::from_utf8(name.to_vec()).unwrap(), inode)
        };
        let at = |path: &str| inode(before, path).ok();
        let is_folder = |node: Option<u64>| node.is_some_and(|node| self.live.nodes[&node].is_folder);
        let names = |names, creates, removes, moves, needs| {
            vec![Unit::Names { names, creates, removes, moves, needs }]
        };
        let units = match words[..] {
            [verb @ ("create" | "mkdir"), path] => {
                let node = inode(after, path).unwrap();
                let is_folder = verb == "mkdir";
                let mode = if is_folder { 0o755 } else { 0o644 };
                let new = Node { is_folder, mode, ..Node::default() };
                self.start.nodes.insert(node, new.clone());
                self.live.nodes.insert(node, new);
                names(vec![name(path, Some(node))], is_folder.then_some(node), None, false, None)
            }
            ["link", from, to] => names(vec![name(to, at(from))], None, None, false, None),
            ["unlink", path] => names(vec![name(path, None)], None, None, false, None),
            ["rmdir", path] => names(vec![name(path, None)], None, at(path), false, None),
            ["rename", from, to] if at(from) == at(to) => vec![],
            ["rename", from, to] => {
                let (source, target) = (at(from), at(to));
                let removes = target.filter(|_| is_folder(target));
                let needs = source.filter(|_| target.is_some() && removes.is_none());
                names(vec![name(from, None), name(to, source)], None, removes, is_folder(source), needs)
            }
            ["exchange", from, to] if at(from) == at(to) => vec![],
            ["exchange", from, to] => {
                let moves = is_folder(at(from)) || is_folder(at(to));
                names(vec![name(from, at(to)), name(to, at(from))], None, None, moves, None)
            }
            ["write", path, _, _, value] => {
                self.write(at(path).unwrap(), number(2), number(3), value.parse().unwrap())
            }
            ["zero", path, _, _] => {
                let file = at(path).unwrap();
                let end = self.live.nodes[&file].size.min(number(2) + number(3));
                (number(2)..end).map(|block| Unit::Bytes { file, block, value: 0 }).collect()
            }
            ["truncate", path, _] => {
                let file = at(path).unwrap();
                let (from, to) = (self.live.nodes[&file].size, number(2));
                let truncation = Unit::Size { file, from, to, value: None, by_write: false };
                if from == to { vec![] } else { vec![truncation] }
            }
            ["mode", path, mode] => {
                let (node, mode) = (at(path).unwrap(), u32::from_str_radix(mode, 8).unwrap());
                let is_same = self.live.nodes[&node].mode == mode;
                if is_same { vec![] } else { vec![Unit::Mode { node, mode }] }
            }
            ["sync", path] => return self.sync(at(path).unwrap()),
            _ => panic!("no operation: {operation}"),
        };
        for unit in units {
            self.live.apply(&unit);
            self.units.push((unit, false));
        }
    }

    fn write(&self, file: u64, block: u64, count: u64, value: u8) -> Vec<Unit> {
        let mut units = Vec::new();
        let mut size = self.live.nodes[&file].size;
        for block in block..block + count {
            let is_journaled = self.rules.model == Model::Journaled;
            if block >= size {
                let value = is_journaled.then_some(value);
                units.push(Unit::Size { file, from: size, to: block + 1, value, by_write: true });
            }
            if block < size || !is_journaled {
                units.push(Unit::Bytes { file, block, value });
            }
            size = size.max(block + 1);
        }
        units
    }

    fn sync(&mut self, node: u64) {
        let is_journaled = self.rules.model == Model::Journaled;
        for at in (0..self.units.len()).rev() {
            let unit = &self.units[at].0;
            let is_covered = is_journaled && unit.is_ordered()
                || unit.is_in(node)
                || unit.attribute_of() == Some(node)
                || unit.bytes_of() == Some(node)
                || (at + 1..self.units.len()).any(|later| self.units[later].1 && self.follows(at, later));
            self.units[at].1 |= is_covered;
        }
    }

    /// Whether the change `j` is kept only with the earlier change `i`, and makes it durable.
    fn follows(&self, i: usize, j: usize) -> bool {
        let (before, after) = (&self.units[i].0, &self.units[j].0);
        let is_size = before.size_of().is_some() && before.size_of() == after.size_of();
        if let Unit::Bytes { file, block, .. } = after {
            let makes = |unit: &Unit| match unit {
                Unit::Size { file: other, from, to, .. } => other == file && from.min(to) <= block,
                _ => false,
            };
            return makes(before) && !self.units[i + 1..j].iter().any(|(unit, _)| makes(unit));
        }
        if self.rules.model == Model::Journaled {
            let needs = match after {
                Unit::Names { needs, .. } => needs.filter(|_| self.rules.rename_syncs),
                _ => None,
            };
            let is_needed = needs.is_some() && (before.size_of() == needs || before.bytes_of() == needs);
            return before.is_ordered() || is_size || is_needed;
        }
        match (before, after) {
            (
                Unit::Names { names: earlier, moves: moved, .. },
                Unit::Names { names: later, moves, removes, .. },
            ) => {
                let is_same = |name: &(u64, String, Option<u64>)| {
                    later.iter().any(|other| (other.0, &other.1) == (name.0, &name.1))
                };
                earlier.iter().any(is_same)
                    || *moved && *moves
                    || removes.is_some_and(|folder| before.is_in(folder))
            }
            _ => before.attribute_of().is_some() && before.attribute_of() == after.attribute_of(),
        }
    }

    /// Whether the change `j` is in a folder that the earlier change `i` creates.
    fn is_within(&self, i: usize, j: usize) -> bool {
        let Unit::Names { creates: Some(folder), .. } = self.units[i].0 else { return false };
        self.rules.model == Model::Strict && self.units[j].0.is_in(folder)
    }

    /// Returns the contents of all subsets that the rules allow.
    pub(crate) fn outcomes(&self) -> BTreeSet<String> {
        let losable: Vec<usize> = (0..self.units.len()).filter(|at| !self.units[*at].1).collect();
        let needed: Vec<Vec<usize>> = (0..self.units.len())
            .map(|j| (0..j).filter(|i| self.follows(*i, j) || self.is_within(*i, j)).collect())
            .collect();
        let mut outcomes = BTreeSet::new();
        'subsets: for subset in 0..1u64 << losable.len() {
            let mut is_kept = vec![false; self.units.len()];
            let mut state = self.start.clone();
            for (at, (unit, is_synced)) in self.units.iter().enumerate() {
                let is_possible = needed[at].iter().all(|needed| is_kept[*needed]);
                let chosen = losable.iter().position(|losable| *losable == at);
                let is_chosen = chosen.is_some_and(|bit| subset & 1 << bit != 0);
                if is_chosen && !is_possible {
                    continue 'subsets;
                }
                is_kept[at] = is_chosen || *is_synced && is_possible;
                if is_kept[at] {
                    state.apply(unit);
                }
            }
            outcomes.insert(state.contents());
        }
        outcomes
    }

    /// Returns the contents with all changes.
    pub(crate) fn contents(&self) -> String {
        self.live.contents()
    }
}

impl State {
    fn apply(&mut self, unit: &Unit) {
        match unit {
            Unit::Names { names, .. } => {
                for (folder, name, node) in names {
                    match node {
                        Some(node) => self.names.insert((*folder, name.clone()), *node),
                        None => self.names.remove(&(*folder, name.clone())),
                    };
                }
            }
            Unit::Size { file, to, value, .. } => {
                let node = self.nodes.get_mut(file).unwrap();
                node.size = *to;
                node.blocks.retain(|block, _| block < to);
                node.blocks.extend(value.map(|value| (to - 1, value)));
            }
            Unit::Mode { node, mode } => self.nodes.get_mut(node).unwrap().mode = *mode,
            Unit::Bytes { file, block, value } => {
                self.nodes.get_mut(file).unwrap().blocks.insert(*block, *value);
            }
        }
    }

    fn contents(&self) -> String {
        let mut lines = Vec::new();
        self.list(ROOT, "", &mut lines);
        lines.join(" ")
    }

    fn list(&self, folder: u64, path: &str, lines: &mut Vec<String>) {
        for ((_, name), inode) in self.names.range((folder, String::new())..(folder + 1, String::new())) {
            let (path, node) = (format!("{path}{name}"), &self.nodes[inode]);
            if node.is_folder {
                lines.push(format!("{path}/"));
                self.list(*inode, &format!("{path}/"), lines);
                continue;
            }
            let value = |block| char::from(b'0' + node.blocks.get(&block).copied().unwrap_or(0));
            let blocks: String = (0..node.size).map(value).collect();
            let mode = if node.mode == 0o644 { String::new() } else { format!(":{:o}", node.mode) };
            lines.push(format!("{path}={blocks}{mode}"));
        }
    }
}

/// Copies a folder and everything in it.
fn copy(folder: &Folder, at: u64, state: &mut State) {
    let attributes = folder.attributes(at).unwrap();
    let mut node = Node { mode: attributes.mode, size: attributes.size / BLOCK, ..Node::default() };
    if attributes.kind == Kind::Folder {
        node.is_folder = true;
        for (name, inode) in folder.entries(at).unwrap() {
            state.names.insert((at, String::from_utf8(name.to_vec()).unwrap()), inode);
            copy(folder, inode, state);
        }
    } else {
        let mut bytes = Vec::new();
        folder.read(at, 0, usize::MAX, &mut bytes).unwrap();
        node.blocks = (0..).zip(bytes.chunks(BLOCK as usize).map(|block| block[0])).collect();
    }
    state.nodes.insert(at, node);
}
