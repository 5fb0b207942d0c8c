//! Verifies LinkBench's tables. Every count must equal the number of visible links of its node and type, and
//! the index must have as many entries as there are visible links.

use super::LinkBench;
use super::load::{Count, Link, Node, read_link_key};
use crate::codec::{KeyRange, Reader, Row};
use crate::{Error, Verified};
use fulgurite_engine::Direction;
use fulgurite_engine::sharded::{Scan, Store};

/// The first node and the type of a group of links.
type Group = (u64, u32);

impl LinkBench {
    /// Checks every node, link and count in one snapshot.
    ///
    /// Fails with an error that names the node with a wrong count, or the table with an unreadable row.
    pub async fn verify(&self, store: &Store) -> Result<Verified, Error> {
        let snapshot = store.snapshot().await;
        let scan = |table| snapshot.scan(table, KeyRange::ALL.bounds(), Direction::Forward);
        let mut verified = Verified::default();
        let mut nodes = scan(self.node);
        while let Some((_, value)) = nodes.next().await? {
            Node::decode(&value)?;
            verified.rows += 1;
        }
        // Links and counts are both sorted by group, so one pass over each table is enough.
        let mut counts = Counts { scan: scan(self.count), rows: 0 };
        let (mut links, mut group, mut visible) = (scan(self.link), (0, 0), 0);
        while let Some((key, value)) = links.next().await? {
            let (id, kind, _) =
                read_link_key(&key).ok_or_else(|| Error::row(Link::TABLE, "has a wrong key"))?;
            if (id, kind) != group {
                counts.check(group, visible).await?;
                (group, visible) = ((id, kind), 0);
            }
            let shown = u64::from(Link::decode(&value)?.visible);
            visible += shown;
            verified.changes += shown;
            verified.rows += 1;
        }
        counts.check(group, visible).await?;
        counts.check_rest().await?;
        verified.rows += counts.rows;
        let mut entries = 0;
        let mut index = snapshot.index_scan(self.by_time, KeyRange::ALL.bounds(), Direction::Forward);
        while index.next().await?.is_some() {
            entries += 1;
        }
        match entries == verified.changes {
            true => Ok(verified),
            false => Err(Error::Broken(format!(
                "{} links are visible and {entries} are in the index by time",
                verified.changes
            ))),
        }
    }
}

/// The counts that were not compared with visible links yet, in the order of their keys.
struct Counts<'a> {
    scan: Scan<'a>,
    rows: u64,
}

impl Counts<'_> {
    async fn next(&mut self) -> Result<Option<(Group, u64)>, Error> {
        let Some((key, value)) = self.scan.next().await? else { return Ok(None) };
        self.rows += 1;
        let mut reader = Reader::new(&key);
        let group = reader.key_u64().zip(reader.key_u32());
        let group = group.ok_or_else(|| Error::row(Count::TABLE, "has a wrong key"))?;
        Ok(Some((group, Count::decode(&value)?.count)))
    }

    /// Compares the count of a group with its number of visible links. All counts of earlier groups that
    /// remain must be zero.
    async fn check(&mut self, group: Group, visible: u64) -> Result<(), Error> {
        if visible == 0 {
            // A group without visible links may have no count, or a count of zero. If it has one, the check
            // of the next group or of the rest reads it and compares it with zero.
            return Ok(());
        }
        loop {
            match self.next().await? {
                Some((earlier, count)) if earlier < group => differ(earlier, count, 0)?,
                Some((found, count)) if found == group => return differ(group, count, visible),
                // The next count belongs to a later group, so this group has no count, which equals a count
                // of zero.
                _ => return differ(group, 0, visible),
            }
        }
    }

    async fn check_rest(&mut self) -> Result<(), Error> {
        while let Some((group, count)) = self.next().await? {
            differ(group, count, 0)?;
        }
        Ok(())
    }
}

fn differ((id, kind): Group, count: u64, visible: u64) -> Result<(), Error> {
    match count == visible {
        true => Ok(()),
        false => Err(Error::Broken(format!(
            "node {id} has {visible} visible links of type {kind}, and its count says {count}"
        ))),
    }
}
