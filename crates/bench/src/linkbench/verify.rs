//! Checks LinkBench's tables: every count equals the number of visible links, and the index has an entry for each of
//! these.

use super::LinkBench;
use super::load::{Count, Link, Node, read_link_key};
use crate::codec::{KeyRange, Reader, Row};
use crate::{Error, Verified};
use fulgurite_device::Device;
use fulgurite_engine::{Direction, Scan, Store};

/// A node and a type of links.
type Group = (u64, u32);

impl LinkBench {
    /// Checks every node, link and count in one snapshot.
    ///
    /// Fails with a sentence that names the node whose count is wrong, or the row that cannot be read.
    pub async fn verify<D: Device + 'static>(&self, store: &Store<D>) -> Result<Verified, Error> {
        let snapshot = store.snapshot();
        let scan = |table| snapshot.scan(table, KeyRange::ALL.bounds(), Direction::Forward);
        let mut verified = Verified::default();
        let mut nodes = scan(self.node);
        while let Some((_, value)) = nodes.next().await? {
            Node::decode(&value)?;
            verified.rows += 1;
        }
        // Links and counts are both in the order of groups, so one pass over each is enough.
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

/// The counts that were not compared yet.
struct Counts<'a, D: Device + 'static> {
    scan: Scan<'a, D>,
    rows: u64,
}

impl<D: Device + 'static> Counts<'_, D> {
    async fn next(&mut self) -> Result<Option<(Group, u64)>, Error> {
        let Some((key, value)) = self.scan.next().await? else { return Ok(None) };
        self.rows += 1;
        let mut reader = Reader::new(&key);
        let group = reader.key_u64().zip(reader.key_u32());
        let group = group.ok_or_else(|| Error::row(Count::TABLE, "has a wrong key"))?;
        Ok(Some((group, Count::decode(&value)?.count)))
    }

    /// Compares a group that has visible links with its count. Those before it have none.
    async fn check(&mut self, group: Group, visible: u64) -> Result<(), Error> {
        if visible == 0 {
            // Its count may be missing, or stand at zero: whoever comes next sees to that.
            return Ok(());
        }
        loop {
            match self.next().await? {
                Some((earlier, count)) if earlier < group => differ(earlier, count, 0)?,
                Some((found, count)) if found == group => return differ(group, count, visible),
                // The counts have gone past it: it has none.
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
