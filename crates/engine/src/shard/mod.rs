//! A shard: one store on one core, with one drive, one buffer pool and one log.
//!
//! A [`Shard`] is composed of groups of state. Each group has private fields and its own methods: the
//! *durable* state, the *state* in memory, the *transactions* in progress, the *background jobs*, and the
//! *reserved log space*. The submodules implement the operations that span several groups, as methods of
//! [`Shard`].

mod durable;
mod state;
mod transactions;
mod jobs;
mod log_room;
mod counters;
mod pages;
mod locking;
pub(crate) mod tree;
mod room;
mod trim;
mod records;
pub(crate) mod commit;
mod checkpoint_notes;
mod checkpoint;
mod own_ops;
mod dropped;
pub(crate) mod recovery;
mod staging;
mod open;

use crate::format::tree::Tree;
use crate::wait::Health;
use crate::{Error, Lsn, Options};
use counters::Counters;
use durable::Durable;
use fulgurite_base::PageId;
use fulgurite_device::Handle;
use jobs::Jobs;
use log_room::LogRoom;
pub(crate) use staging::LoadNumbers;
use state::State;
use transactions::Transactions;

/// The open store of one core.
pub(crate) struct Shard {
    pub(crate) handle: Handle,
    pub(crate) options: Options,
    pub(crate) health: Health,
    pub(crate) durable: Durable,
    pub(crate) state: State,
    pub(crate) transactions: Transactions,
    pub(crate) jobs: Jobs,
    pub(crate) log_room: LogRoom,
    pub(crate) counters: Counters,
}

impl Shard {
    /// Returns the page size in bytes.
    pub(crate) fn page_bytes(&self) -> u32 {
        self.durable.superblock().page_bytes
    }

    /// Returns the tree with this number.
    pub(crate) fn tree(&self, id: u32) -> Result<Tree, Error> {
        self.state.catalogue().tree(id).ok_or_else(|| Error::LogCorrupt {
            at: self.durable.log().durable(),
            what: format!("it names tree {id}, which does not exist"),
        })
    }

    /// Fails once the store has stopped or was closed.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        self.health.check()?;
        if self.transactions.is_closed() { Err(Error::Closed) } else { Ok(()) }
    }

    /// Fails if the store was opened for reading only.
    pub(crate) fn check_writable(&self) -> Result<(), Error> {
        if self.options.read_only { Err(Error::ReadOnly) } else { Ok(()) }
    }

    /// Marks a page as dirty; the log contains its changes from the LSN `since` on.
    pub(crate) fn mark(&self, page: PageId, since: Lsn) {
        self.durable.pages().mark(page, since);
        self.state.with_backup(|watch| watch.touch(page));
    }

    /// Returns the LSN of the newest visible state.
    pub(crate) fn visible_lsn(&self) -> Lsn {
        self.transactions.commits().visible()
    }

    /// Makes every commit visible that may be visible by now.
    pub(crate) fn advance(&self) {
        let bug = planted!(self.options, UndurableVisible | NoFlushBeforeAcknowledge);
        let durable = if bug { Lsn(u64::MAX) } else { self.durable.log().durable() };
        let moved = self.transactions.commits_mut().advance(durable);
        if moved {
            let visible = self.visible_lsn();
            self.state.versions_mut().trim(visible);
            self.transactions.notify_visible();
        }
    }

    /// Waits until everything up to `lsn` is visible.
    pub(crate) async fn until_visible(&self, lsn: Lsn) -> Result<(), Error> {
        let done = || {
            if self.visible_lsn() >= lsn {
                return Some(Ok(()));
            }
            self.health.check().err().map(Err)
        };
        self.transactions.until_visible(done).await
    }
}
