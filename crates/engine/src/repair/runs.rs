//! What sorted runs of a damaged store have, and what of them is lost.

use super::KeyRange;
use super::pages::Pages;
use super::plan::{Segment, walk};
use crate::image::Source;
use crate::page;
use crate::page::node::Node;
use crate::runs::{Known, value};
use fulgurite_base::PageId;
use std::collections::{BTreeMap, BTreeSet};

/// The number of a run, and what it says of a key.
pub type Numbered = (u32, Option<Vec<u8>>);

/// What runs have, by tree and key: the number of the newest run, and what it says.
#[derive(Default)]
pub struct FoundRuns {
    pub records: BTreeMap<(u32, Vec<u8>), Numbered>,
    /// By tree: keys whose records in runs are lost, so that leaves may have older ones.
    pub lost: BTreeMap<u32, Vec<KeyRange>>,
}

impl FoundRuns {
    /// Reads the runs that the catalogue names.
    pub async fn read<S: Source>(
        pages: &Pages<'_, S>,
        mut known: Vec<Known>,
        reached: &mut BTreeSet<PageId>,
    ) -> FoundRuns {
        known.sort_unstable_by_key(|run| run.number);
        let mut found = FoundRuns::default();
        for run in known {
            // One that was given back, which the catalogue does not say yet.
            let root = pages.get(run.root).await;
            if root.is_some_and(|root| Node::new(&root).is_none() || page::tree(&root) != run.tree().id) {
                continue;
            }
            for segment in walk(pages, run.tree(), reached).await {
                found.add(pages, &run, segment).await;
            }
        }
        found
    }

    async fn add<S: Source>(&mut self, pages: &Pages<'_, S>, run: &Known, segment: Segment) {
        let Some(leaf) = segment.leaf else {
            self.lost.entry(run.of).or_default().push((segment.low, segment.high));
            return;
        };
        let Some(bytes) = pages.get(leaf).await else { return };
        let Some(node) = Node::new(&bytes) else { return };
        for (key, cell) in node.records() {
            self.records.insert((run.of, key), (run.number, value(cell).map(<[u8]>::to_vec)));
        }
    }
}
