//! Power cuts: the pieces that one can lose, the choice among them, and the folder that is left.

use crate::folder::{Folder, addresses};
use crate::pending::Pending;
use crate::rules::Model;
use crate::tree::{Change, ROOT, grouped};
use fulgurite_base::Prng;
use fulgurite_disk::{Pattern, choose};
use rustc_hash::FxHashSet;
use std::fmt;
use std::sync::Arc;

/// A change, or a part of a write, that a cut keeps or loses as a whole. Its `Display` says in words what it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Piece {
    /// The number of the change. Later changes have larger numbers.
    pub number: u64,
    /// The offset of its first byte in the file; 0 if the change is no write.
    pub offset: u64,
    /// The number of its bytes; 0 if the change is no write.
    pub length: u64,
    /// The number of the first change that the same call made.
    pub call: u64,
    /// The file that was written, or the change in words.
    words: Arc<str>,
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.length {
            0 => f.write_str(&self.words),
            length => {
                write!(f, "write of {} bytes at {} of {}", grouped(length), grouped(self.offset), self.words)
            }
        }
    }
}

/// A power cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The pattern by which the lost pieces were chosen; `None` if the caller chose them.
    pub pattern: Option<Pattern>,
    /// The pieces that could be lost.
    pub pieces: Vec<Piece>,
    /// The pieces that were lost, with all that needed them. Changes of a folder that was synced may be among them, if
    /// the folder was lost. Writes to a file whose creation was lost are not listed.
    pub lost: Vec<Piece>,
}

impl Folder {
    /// Returns the pieces that a power cut could lose now, in the order of their changes.
    pub fn pieces(&self) -> Vec<Piece> {
        let losable = self.journal.pending.iter().filter(|(_, pending)| !pending.is_synced);
        losable.flat_map(|(number, pending)| self.pieces_of(*number, pending)).collect()
    }

    fn pieces_of(&self, number: u64, pending: &Pending) -> Vec<Piece> {
        let piece = |offset, length, words| Piece { number, offset, length, call: pending.call, words };
        let words: Arc<str> = self.live.describe(&pending.change).into();
        match &pending.change {
            Change::Data { file, .. } => {
                let start = addresses(*file, 0..0).start;
                let pieces = self.versions.pieces_of(number).into_iter();
                pieces.map(|part| piece(part.offset - start, part.length, words.clone())).collect()
            }
            _ => vec![piece(0, 0, words)],
        }
    }

    /// Cuts the power: the seed decides what is lost. Nothing is open afterwards.
    pub fn power_cut(&mut self, seed: u64) -> Cut {
        let pieces = self.pieces();
        let is_ordered = |piece: &&Piece| {
            let pending = self.journal.pending.get(&piece.number);
            self.rules.model == Model::Journaled && pending.is_some_and(|pending| pending.change.is_ordered())
        };
        let (ordered, mut free): (Vec<&Piece>, Vec<&Piece>) = pieces.iter().partition(is_ordered);
        // The sizes and the bytes of one call are lost apart.
        let group = |piece: &&Piece| 2 * piece.call + u64::from(piece.length > 0);
        free.sort_by_key(group);
        let (pattern, mut lost) = choose(&free, group, seed);
        // The first lost change decides about all changes of a journal. A pattern that loses each with some
        // probability would keep few.
        let mut random = Prng::new(seed, "journal");
        let kept = match random.below(3) {
            0 => ordered.len(),
            _ => random.below(ordered.len() as u64 + 1) as usize,
        };
        lost.extend(&ordered[kept..]);
        let lost: Vec<Piece> = lost.into_iter().cloned().collect();
        Cut { pattern: Some(pattern), lost: self.cut(&lost), pieces }
    }

    /// Cuts the power and loses the pieces `lost`, which must be of [`Folder::pieces`], with all that need them.
    pub fn power_cut_with(&mut self, lost: &[Piece]) -> Cut {
        let pieces = self.pieces();
        Cut { pattern: None, lost: self.cut(lost), pieces }
    }

    /// Loses pieces, and returns all that were lost.
    fn cut(&mut self, chosen: &[Piece]) -> Vec<Piece> {
        let chosen: FxHashSet<(u64, u64)> = chosen.iter().map(|piece| (piece.number, piece.offset)).collect();
        let mut lost = Vec::new();
        let mut hit: FxHashSet<u64> = FxHashSet::default();
        for (number, pending) in &self.journal.pending {
            let mut needed = pending.after.iter().chain(&pending.within);
            let all = needed.any(|needed| hit.contains(needed));
            let is_lost =
                |piece: &Piece| all || !pending.is_synced && chosen.contains(&(*number, piece.offset));
            let before = lost.len();
            lost.extend(self.pieces_of(*number, pending).into_iter().filter(is_lost));
            if lost.len() > before {
                hit.insert(*number);
            } else {
                self.durable.apply(&pending.change);
            }
        }
        self.lose_bytes(&lost);
        self.settle();
        lost
    }

    /// Takes the lost writes back, and the bytes of lost extensions and truncations.
    fn lose_bytes(&mut self, lost: &[Piece]) {
        let tear_bytes = self.rules.tear_bytes.max(1);
        let mut whole: FxHashSet<u64> = FxHashSet::default();
        let mut units: FxHashSet<(u64, u64)> = FxHashSet::default();
        for Piece { number, offset, length, .. } in lost {
            match &self.journal.pending.get(number).map(|pending| &pending.change) {
                Some(Change::Data { file, .. }) if *length > 0 => {
                    units.insert((*number, addresses(*file, *offset..*offset).start / tear_bytes));
                }
                _ => drop(whole.insert(*number)),
            }
        }
        self.versions.lose(|number, unit| whole.contains(&number) || units.contains(&(number, unit)));
    }

    /// Continues with the durable tree, without the inodes that have no name.
    fn settle(&mut self) {
        self.journal = Default::default();
        self.opens.clear();
        self.live = self.durable.clone();
        let nameless = self.live.inodes.iter().filter(|(inode, found)| found.links == 0 && **inode != ROOT);
        let nameless: Vec<u64> = nameless.map(|(inode, _)| *inode).collect();
        for inode in nameless {
            self.discard(inode);
            self.live.inodes.remove(&inode);
        }
        self.durable = self.live.clone();
    }
}
