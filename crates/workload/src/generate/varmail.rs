//! Generates the block writes of a mail server, after Filebench's varmail. Files are deleted, created,
//! appended to and synced, on a file system with a journal.
//!
//! *Assumptions.* Files have 1 to 8 blocks, 4 on average, and fill two thirds of the space. The popularity of
//! a file is proportional to rank^-0.9 (Oh et al., MiDAS, FAST 2024, call varmail Zipfian). Half of the
//! operations delete a file and write a new one, half append a block or two. New blocks are allocated from
//! the next free ones, circling through the space. Each sync writes two blocks of the journal, which has a
//! 128th of the space. Every sixteenth sync writes the file's inode block; inodes have a 64th of the space.
//! Reads and discards are omitted.

use super::draw::between;
use super::generator::{Generator, RequestSource};
use super::recipe::{Recipe, Space};
use super::zipf::Zipf;
use crate::{Op, Request};
use fulgurite_base::{Declared, Opt, Prng, Share, SpecError};
use std::collections::VecDeque;

const MOST_BLOCKS: u64 = 8;

/// The options of `varmail`, of which there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VarmailConfig;

impl Declared for VarmailConfig {
    const OPTIONS: &'static [Opt<VarmailConfig>] = &[];
}

/// The generator, with the blocks of each file and the free space.
#[derive(Debug)]
struct Varmail {
    journal: u64,
    inodes: u64,
    /// The first data block, and the number of data blocks.
    first: u64,
    data: u64,
    /// A bitmap of the data blocks in use.
    used: Vec<u64>,
    next: u64,
    next_in_journal: u64,
    files: Vec<Vec<u32>>,
    popular: Zipf,
    syncs: u64,
    out: VecDeque<Request>,
    prng: Prng,
}

impl Recipe for VarmailConfig {
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError> {
        let Space { pages, seed, .. } = space;
        if !(1_000..1 << 32).contains(&pages) {
            return Err(SpecError::new(format!(
                "pages of varmail: {pages} is out of range; accepted: 1000 to 2^32"
            )));
        }
        let (journal, inodes) = (pages / 128, pages / 64);
        let first = journal + inodes;
        let data = pages - first;
        let files = (data * 2 / 3 / 4).max(1);
        let mut varmail = Varmail {
            journal,
            inodes,
            first,
            data,
            used: vec![0; data.div_ceil(64) as usize],
            next: 0,
            next_in_journal: 0,
            files: vec![Vec::new(); files as usize],
            popular: Zipf::new(files, 0.9, Share::ZERO, Prng::new(seed, "varmail files")),
            syncs: 0,
            out: VecDeque::new(),
            prng: Prng::new(seed, "varmail operations"),
        };
        for file in 0..files as usize {
            let blocks = between(&mut varmail.prng, 1, 7);
            varmail.files[file] = (0..blocks).filter_map(|_| varmail.take()).collect();
        }
        Ok(Generator::new(varmail))
    }

    fn writes_anything(&self) -> bool {
        true
    }
}

impl Varmail {
    /// Allocates the next free data block. Returns `None` if no block is free.
    fn take(&mut self) -> Option<u32> {
        for _ in 0..self.data {
            let block = self.next;
            self.next = (self.next + 1) % self.data;
            let (word, bit) = (&mut self.used[(block / 64) as usize], block % 64);
            if *word >> bit & 1 == 0 {
                *word |= 1 << bit;
                return Some(block as u32);
            }
        }
        None
    }

    fn operation(&mut self) {
        let file = self.popular.request().page as usize;
        // The file's list of blocks is taken out of `files`, because allocating blocks borrows the whole
        // generator.
        let mut blocks = std::mem::take(&mut self.files[file]);
        // A file of eight blocks has reached its greatest size, so it is replaced.
        let replaced = self.prng.below(2) == 0 || blocks.len() as u64 >= MOST_BLOCKS;
        let more = if replaced { between(&mut self.prng, 1, 7) } else { between(&mut self.prng, 1, 2) };
        if replaced {
            for block in blocks.drain(..) {
                self.used[(block / 64) as usize] &= !(1 << (block % 64));
            }
        }
        for _ in 0..more {
            if let Some(block) = self.take() {
                blocks.push(block);
                self.out.push_back(Request::of_page(Op::Write, self.first + u64::from(block)));
            }
        }
        self.files[file] = blocks;
        for _ in 0..2 {
            self.out.push_back(Request::of_page(Op::Write, self.next_in_journal));
            self.next_in_journal = (self.next_in_journal + 1) % self.journal.max(1);
        }
        self.syncs += 1;
        if self.syncs.is_multiple_of(16) {
            let inode = self.journal + file as u64 * self.inodes / self.files.len() as u64;
            self.out.push_back(Request::of_page(Op::Write, inode));
        }
    }
}

impl RequestSource for Varmail {
    fn request(&mut self) -> Request {
        loop {
            if let Some(request) = self.out.pop_front() {
                return request;
            }
            self.operation();
        }
    }
}
