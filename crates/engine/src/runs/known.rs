//! How the catalogue names runs, and what is read of them when a store is opened.
//!
//! The name of a run is a byte that no name of a table begins with, and the number. The value is as long as that of a table: `kind (1: 4), the tree
//! whose records it has (4), root (8), number (4)`. One more record has the number of the newest run that there ever was, `kind (1: 5), zeros
//! (12), number (4)`: leaves know numbers of runs that are gone.

use super::filter::Filter;
use super::{FIRST_RUN_TREE, Run, Sweep};
use crate::Error;
use crate::locks::hash_of_key;
use crate::page::node::{Node, longest_key};
use crate::page::{self, get_u32, get_u64};
use crate::shard::Shard;
use crate::tree::{Tree, leaf};
use fulgurite_base::PageId;
use fulgurite_device::Device;
use std::cell::Cell as Flag;

/// What names of the store's own begin with, which are no text.
const OWN: u8 = 0xFF;
/// The name of the record that has the number of the newest run.
pub const NEWEST: &[u8] = &[OWN];

/// What the catalogue says of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its number.
    pub number: u32,
    /// The tree whose records it has.
    pub of: u32,
    /// Where its own tree begins.
    pub root: PageId,
}

impl Known {
    /// Its own tree.
    pub fn tree(&self) -> Tree {
        Tree { id: FIRST_RUN_TREE | self.number, root: self.root }
    }

    /// The catalogue's record.
    pub fn write(&self) -> (Vec<u8>, Vec<u8>) {
        let value =
            [&[4][..], &self.of.to_le_bytes(), &self.root.0.to_le_bytes(), &self.number.to_le_bytes()];
        (name(self.number), value.concat())
    }

    /// What a record of the catalogue says of a run; `None` where it is not about one.
    pub fn read(name: &[u8], value: &[u8]) -> Option<Known> {
        let is_run = is_own(name) && name != NEWEST && value.len() == 17 && value[0] == 4;
        is_run.then(|| Known {
            number: get_u32(value, 13),
            of: get_u32(value, 1),
            root: PageId(get_u64(value, 5)),
        })
    }
}

/// The name of a run.
pub fn name(number: u32) -> Vec<u8> {
    [&[OWN][..], &number.to_be_bytes()].concat()
}

/// Whether a name is none of a table or an index.
pub fn is_own(name: &[u8]) -> bool {
    name.first() == Some(&OWN)
}

/// The value of [`NEWEST`].
pub fn newest(number: u32) -> Vec<u8> {
    [&[5][..], &[0; 12], &number.to_le_bytes()].concat()
}

impl<D: Device + 'static> Shard<D> {
    /// Brings the runs in line with the catalogue's records about them.
    pub async fn load_runs(&self, records: Vec<(Vec<u8>, Vec<u8>)>) -> Result<(), Error> {
        let mut there = Vec::new();
        for (name, value) in &records {
            if name == NEWEST && value.len() == 17 {
                let mut runs = self.runs.borrow_mut();
                runs.newest = runs.newest.max(get_u32(value, 13));
            } else if let Some(known) = Known::read(name, value) {
                there.push(known);
            } else {
                return Err(Error::corrupt(PageId(0), "a record of the catalogue is damaged"));
            }
        }
        let gone: Vec<u32> = {
            let runs = self.runs.borrow();
            let is_gone = |run: &&std::rc::Rc<Run>| !there.iter().any(|known| known.number == run.number);
            runs.all.iter().filter(is_gone).map(|run| run.number).collect()
        };
        gone.into_iter().for_each(|number| self.runs.borrow_mut().remove(number));
        for known in there {
            let is_new = !self.runs.borrow().all.iter().any(|run| run.number == known.number);
            // The log may say further on that the run is gone.
            if is_new && self.has_root(known.tree()).await? {
                let run = self.read_whole_run(known).await?;
                self.runs.borrow_mut().add(run);
            }
        }
        Ok(())
    }

    /// Whether the root of a run is there, and not given back.
    async fn has_root(&self, tree: Tree) -> Result<bool, Error> {
        let guard = self.read_page(tree.root).await?;
        Ok(Node::new(guard.bytes()).is_some() && page::tree(guard.bytes()) == tree.id)
    }

    /// Reads a run for its filter. Of one that is damaged, any key may be in it: who asks for one meets the damage.
    async fn read_whole_run(&self, known: Known) -> Result<Run, Error> {
        let (mut hashes, mut low, mut high) = (Vec::new(), None, Vec::new());
        let look = |node: Node<'_>| {
            for index in 0..node.len() {
                high = node.key(index);
                low.get_or_insert_with(|| high.clone());
                hashes.push(hash_of_key(known.of, &high));
            }
            Ok(())
        };
        let read = self.each_leaf(known.tree(), look).await;
        let pages = match read {
            Ok(()) => self.pages_of_run(known.tree()).await?.len() as u64,
            Err(Error::Corrupt { .. }) => 1,
            Err(error) => return Err(error),
        };
        let filter = read.is_ok().then(|| Filter::new(hashes.iter().copied()));
        if filter.is_none() {
            (low, high) = (None, vec![u8::MAX; longest_key(self.page_bytes())]);
        }
        let (number, of, tree) = (known.number, known.of, known.tree());
        let low = low.unwrap_or_default();
        Ok(Run { number, of, tree, low, high, pages, filter, sweep: Flag::new(Sweep::Not) })
    }

    /// The pages of a run. Its leaves are not read.
    pub async fn pages_of_run(&self, tree: Tree) -> Result<Vec<PageId>, Error> {
        let mut pages = vec![tree.root];
        let mut level = vec![tree.root];
        loop {
            let mut below = Vec::new();
            let mut is_above_leaves = true;
            for page in &level {
                let guard = self.read_page(*page).await?;
                let node = leaf(guard.bytes())?;
                if node.level() > 0 {
                    is_above_leaves &= node.level() == 1;
                    below.extend((0..node.len()).map(|index| node.child(index)));
                }
            }
            pages.extend(&below);
            if is_above_leaves || below.is_empty() {
                return Ok(pages);
            }
            level = below;
        }
    }
}
