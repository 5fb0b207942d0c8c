//! Generates the writes of file systems that survive a crash. [`journaling`] writes blocks twice,
//! [`log_structured`] cleans segments, and [`copy_on_write`] rewrites the path of a tree. These are the three
//! kinds of file systems in Oh et al., "SHARE Interface for Flash Storage" (SIGMOD 2016), and in the slides
//! *MyFlashSQL* (Lee, 2017). [`append_only`] is a document store in a file. It survives a crash by appending,
//! and compacts its file.
//!
//! All of them have the same changes: blocks of files are changed, popular blocks more often, and a fixed
//! number of changes forms a transaction, which becomes durable as a whole. A block is one page of the drive.
//! Reads are omitted.

pub(crate) mod append_only;
pub(crate) mod copy_on_write;
pub(crate) mod journaling;
pub(crate) mod log_structured;

use super::zipf::Zipf;
use fulgurite_base::{Prng, Share, SpecError};

/// The options of the changes that a file system makes durable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangesConfig {
    /// The Zipf exponent of the blocks' popularity; 0 is uniform.
    pub theta: f64,
    /// The number of changes in a transaction. A block that is changed twice in one transaction is written
    /// once.
    pub transaction: u32,
}

impl Default for ChangesConfig {
    fn default() -> ChangesConfig {
        ChangesConfig { theta: 0.9, transaction: 32 }
    }
}

/// The most changes in a transaction.
const TRANSACTION_MOST: u32 = 1 << 12;

/// Declares the options of a file system `$config` with a field `changes`, after its own options.
macro_rules! with_changes {
    ($config:ty $(, $own:expr)*) => {
        impl fulgurite_base::Declared for $config {
            const OPTIONS: &'static [fulgurite_base::Opt<$config>] = &[
                $($own,)*
                fulgurite_base::opt!(
                    "theta",
                    changes.theta,
                    $crate::generate::zipf::EXPONENT,
                    0.0 => 5.0,
                    "the exponent of the blocks' popularity: 0 is uniform"
                ),
                fulgurite_base::opt!(
                    "transaction",
                    changes.transaction,
                    fulgurite_base::option::COUNT,
                    1 => $crate::generate::file_system::TRANSACTION_MOST,
                    "changes of blocks that become durable together"
                ),
            ];
        }
    };
}

use with_changes;

/// A source of changed blocks, transaction by transaction.
#[derive(Debug)]
struct Changes {
    popular: Zipf,
    transaction: u32,
    /// For each block, the number of the transaction that last changed it; transactions are counted from one.
    changed_in: Vec<u32>,
    number: u32,
}

impl Changes {
    fn new(config: ChangesConfig, blocks: u64, seed: u64) -> Changes {
        let popular = Zipf::new(blocks, config.theta, Share::ONE, Prng::new(seed, "changed blocks"));
        Changes { popular, transaction: config.transaction, changed_in: vec![0; blocks as usize], number: 0 }
    }

    /// Returns the blocks that the next transaction changes, each once.
    fn next(&mut self) -> Vec<u32> {
        if self.number == u32::MAX {
            // The transaction numbers start again from one. All marks are cleared, so that no block seems to
            // be changed by the new transaction already.
            self.changed_in.fill(0);
            self.number = 0;
        }
        self.number += 1;
        let Changes { popular, transaction, changed_in, number } = self;
        let drawn = (0..*transaction).map(|_| popular.request().page as u32);
        drawn
            .filter(|block| std::mem::replace(&mut changed_in[*block as usize], *number) != *number)
            .collect()
    }
}

/// The shape of a tree over blocks. Its nodes are numbered after the blocks, level by level, the root last.
#[derive(Debug)]
struct Tree {
    fanout: u32,
    /// The first number of each level, beginning with the level of the blocks.
    firsts: Vec<u32>,
    numbers: u64,
}

impl Tree {
    fn new(blocks: u64, fanout: u32) -> Tree {
        let mut firsts = vec![0];
        let (mut numbers, mut nodes) = (blocks, blocks);
        while nodes > 1 {
            nodes = nodes.div_ceil(u64::from(fanout));
            firsts.push(numbers as u32);
            numbers += nodes;
        }
        Tree { fanout, firsts, numbers }
    }

    /// Returns the number of levels, including the level of the blocks.
    fn levels(&self) -> usize {
        self.firsts.len()
    }

    /// Returns the number of blocks and nodes together.
    fn numbers(&self) -> u64 {
        self.numbers
    }

    /// Returns the numbers of the changed blocks and of the nodes above them, each once, level by level up to
    /// the root.
    fn touched(&self, mut changed: Vec<u32>) -> Vec<u32> {
        let mut touched = Vec::new();
        for first in &self.firsts {
            touched.extend(changed.iter().map(|index| first + index));
            changed.iter_mut().for_each(|index| *index /= self.fanout);
            changed.sort_unstable();
            changed.dedup();
        }
        touched
    }
}

/// Fails if the space has fewer than `least` pages, or too many for page numbers of 32 bits.
pub(super) fn check_pages(name: &str, pages: u64, least: u64) -> Result<(), SpecError> {
    match (least..1 << 32).contains(&pages) {
        true => Ok(()),
        false => Err(SpecError::new(format!(
            "pages of {name}: {pages} is out of range; accepted: {least} to 2^32"
        ))),
    }
}
