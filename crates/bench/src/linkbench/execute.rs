//! Executes LinkBench's operations on its three tables.

use super::load::{Count, Link, Node, count_key, link_key};
use super::{LinkBench, Request};
use crate::codec::{Key, Row};
use crate::{Error, Session, Work};
use fulgurite_engine::Direction;

impl LinkBench {
    pub(super) async fn carry_out(&self, request: &Request, session: &Session) -> Result<(), Error> {
        match request {
            Request::GetLinksList { id, kind } => self.get_links_list(session, *id, *kind).await,
            Request::GetNode { id } => {
                let found = session.get(self.node, &Key::new().u64(*id)).await?;
                found.map(|found| Node::decode(&found)).transpose().map(drop)
            }
            Request::AddLink { id, kind, other, data } | Request::UpdateLink { id, kind, other, data } => {
                // As in the original LinkBench, an update of a link is an addition of a link that exists
                // already.
                self.add_link(session, (*id, *kind, *other), data).await
            }
            Request::UpdateNode { id, data } => self.update_node(session, *id, data).await,
            Request::CountLinks { id, kind } => {
                let found = session.get(self.count, &count_key(*id, *kind)).await?;
                found.map(|found| Count::decode(&found)).transpose().map(drop)
            }
            Request::DeleteLink { id, kind, other } => self.delete_link(session, (*id, *kind, *other)).await,
            Request::AddNode { id, data } => {
                let work = session.begin();
                let row = Node { kind: 0, version: 0, time: session.now().0, data: data.clone() };
                work.put_row(self.node, &Key::new().u64(*id), &row).await?;
                work.commit().await
            }
            Request::DeleteNode { id } => {
                let (work, key) = (session.begin(), Key::new().u64(*id));
                if work.get_for_update(self.node, &key).await?.is_some() {
                    work.delete(self.node, &key).await?;
                }
                work.commit().await
            }
            Request::GetLink { id, kind, others } => {
                let keys: Vec<Key> = others.iter().map(|other| link_key(*id, *kind, *other)).collect();
                let found = session.view().await.get_many(self.link, &keys).await?;
                found.into_iter().flatten().try_for_each(|link| Link::decode(&link).map(drop))
            }
        }
    }

    /// Reads the visible links of a node, the latest first, and checks their order.
    async fn get_links_list(&self, session: &Session, id: u64, kind: u32) -> Result<(), Error> {
        let range = count_key(id, kind).prefix();
        let most = self.config.list as usize;
        let rows = session.view().await.index_scan(self.by_time, &range, Direction::Backward, most).await?;
        let times: Result<Vec<u64>, Error> =
            rows.iter().map(|row| Link::decode(&row.value).map(|link| link.time)).collect();
        match times?.is_sorted_by(|later, earlier| later >= earlier) {
            true => Ok(()),
            false => Err(Error::Broken(format!("the links of node {id} are not listed by time"))),
        }
    }

    async fn update_node(&self, session: &Session, id: u64, data: &str) -> Result<(), Error> {
        let (work, key) = (session.begin(), Key::new().u64(id));
        // A deleted node is not inserted again, so the update of such a node changes nothing.
        if let Some(node) = work.find_for_update::<Node>(self.node, &key).await? {
            let (version, time) = (node.version + 1, session.now().0);
            work.put_row(self.node, &key, &Node { version, time, data: data.to_owned(), ..node }).await?;
        }
        work.commit().await
    }

    /// Adds a link, or updates an existing one and makes it visible. A link that becomes visible increments
    /// its count.
    async fn add_link(
        &self,
        session: &Session,
        (id, kind, other): (u64, u32, u64),
        data: &str,
    ) -> Result<(), Error> {
        let (work, key) = (session.begin(), link_key(id, kind, other));
        let before: Option<Link> = work.find_for_update(self.link, &key).await?;
        let version = before.as_ref().map_or(0, |link| link.version.wrapping_add(1));
        let row = Link { visible: 1, version, time: session.now().0, data: data.to_owned() };
        work.put_row(self.link, &key, &row).await?;
        if before.is_none_or(|link| link.visible == 0) {
            self.count_up(&work, id, kind, 1).await?;
        }
        work.commit().await
    }

    /// Makes a visible link invisible and decrements its count.
    async fn delete_link(&self, session: &Session, (id, kind, other): (u64, u32, u64)) -> Result<(), Error> {
        let (work, key) = (session.begin(), link_key(id, kind, other));
        let before: Option<Link> = work.find_for_update(self.link, &key).await?;
        if let Some(link) = before.filter(|link| link.visible == 1) {
            let version = link.version.wrapping_add(1);
            work.put_row(self.link, &key, &Link { visible: 0, version, ..link }).await?;
            self.count_up(&work, id, kind, -1).await?;
        }
        work.commit().await
    }

    /// Adds `by` to the number of a node's visible links of one type.
    async fn count_up(&self, work: &Work<'_>, id: u64, kind: u32, by: i64) -> Result<(), Error> {
        let key = count_key(id, kind);
        let before: Option<Count> = work.find_for_update(self.count, &key).await?;
        let Count { count, version } = before.unwrap_or(Count { count: 0, version: 0 });
        let count = count.checked_add_signed(by).ok_or_else(|| {
            Error::row(Count::TABLE, format!("counts no link although one exists (node {id}, type {kind})"))
        })?;
        work.put_row(self.count, &key, &Count { count, version: version + 1 }).await
    }
}
