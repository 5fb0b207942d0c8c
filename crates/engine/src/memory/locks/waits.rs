//! The waits-for graph. Its nodes are the transactions. It has an edge from each waiting request to every
//! transaction that blocks the request.
//!
//! An edge is stored at the blocking transaction. This answers two questions: which requests to grant when
//! that transaction ends, and which transactions wait for it, directly or transitively. A waiting request
//! only counts its edges, and is granted when the count reaches zero. An edge whose waiting request is gone
//! is stale. A stale edge is recognised by the arrival number of its request and skipped.
//!
//! Requests that queue for one key have an edge to each earlier one, so their edges grow quadratically. This
//! is the price of storing the graph as it is defined. `benches/locks.rs` measures the price: with 200
//! requests in a queue, 350 KB, and 20 us for a search that visits all of them. A search is needed only if a
//! request conflicts with a transaction that waits too, and it visits only transactions that wait for the
//! requester.

use super::mode::{Mode, TxnId};
use super::slab::{Slab, Slot};
use rustc_hash::FxHashMap;
use std::mem;

/// The target of a request: a key or a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The slot of a record of `Points`.
    Point(Slot),
    /// The slot of a record of `Ranges`.
    Range(Slot),
}

/// A waiting request of a transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) target: Target,
    pub(super) mode: Mode,
    /// The arrival number of the request: its number among all requests that ever waited.
    arrival: u64,
    /// The number of edges from the request.
    blockers: u32,
}

/// An edge, which is stored at the blocking transaction and names the waiting request.
#[derive(Clone, Copy, Debug)]
struct Edge {
    waiter: Slot,
    arrival: u64,
    /// Whether the request waits for another request rather than for a lock.
    queued: bool,
}

/// An edge of the graph, for those who look at several graphs together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WaitsFor {
    /// The transaction that waits.
    pub waiter: TxnId,
    /// The age of that transaction.
    pub age: TxnId,
    /// The transaction that it waits for.
    pub blocker: TxnId,
}

/// A transaction that holds locks or waits.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    pub(super) id: TxnId,
    /// The age of the transaction: its own number, or that of the transaction that it repeats.
    pub(super) age: TxnId,
    /// The point locks that the transaction holds.
    pub(super) points: Vec<Slot>,
    /// The range locks that the transaction holds.
    pub(super) ranges: Vec<Slot>,
    /// Whether the transaction was chosen as a victim and must end.
    pub(super) doomed: bool,
    waiting: Option<Request>,
    blocked: Vec<Edge>,
    /// The length of `blocked` at which stale edges are removed from it.
    tidy_at: usize,
    /// The number of the last search that visited the transaction, and the predecessor of the transaction in
    /// that search. `None` if the predecessor is the target of the search.
    search: u64,
    via: Option<Slot>,
}

impl Transaction {
    /// Returns the place of the transaction in the order of ages; the youngest is last.
    fn seniority(&self) -> (TxnId, TxnId) {
        (self.age, self.id)
    }
}

/// The transactions and the edges between them.
#[derive(Debug)]
pub(super) struct Waits {
    transactions: Slab<Transaction>,
    slots: FxHashMap<TxnId, Slot>,
    arrivals: u64,
    searches: u64,
    /// The queue of a search, which is kept to reuse its memory.
    frontier: Vec<Slot>,
    /// The number of edges, including stale ones.
    edges: usize,
}

/// The largest capacity of a list of locks that a free record keeps.
const KEPT: usize = 1024;

impl Waits {
    pub(super) fn new() -> Waits {
        Waits {
            transactions: Slab::new(),
            slots: FxHashMap::default(),
            arrivals: 0,
            searches: 0,
            frontier: Vec::new(),
            edges: 0,
        }
    }

    /// Returns the record of a transaction, or `None` if the transaction neither holds locks nor waits.
    #[inline]
    pub(super) fn find(&self, id: TxnId) -> Option<Slot> {
        self.slots.get(&id).copied()
    }

    /// Returns the record of a transaction, and creates it if there is none.
    #[inline]
    pub(super) fn enter(&mut self, id: TxnId) -> Slot {
        *self.slots.entry(id).or_insert_with(|| {
            let slot = self.transactions.take();
            self.transactions[slot].id = id;
            self.transactions[slot].age = id;
            slot
        })
    }

    /// Removes an ending transaction from the index. The caller must then pass its record to `free`.
    #[inline]
    pub(super) fn take(&mut self, id: TxnId) -> Option<Slot> {
        self.slots.remove(&id)
    }

    /// Frees the record of a transaction whose locks are released and whose edges are dropped.
    pub(super) fn free(&mut self, slot: Slot) {
        let transaction = &mut self.transactions[slot];
        debug_assert!(transaction.waiting.is_none() && transaction.blocked.is_empty());
        transaction.doomed = false;
        transaction.tidy_at = 0;
        for locks in [&mut transaction.points, &mut transaction.ranges] {
            locks.clear();
            if locks.capacity() > KEPT {
                *locks = Vec::new();
            }
        }
        self.transactions.free(slot);
    }

    #[inline]
    pub(super) fn get(&self, slot: Slot) -> &Transaction {
        &self.transactions[slot]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: Slot) -> &mut Transaction {
        &mut self.transactions[slot]
    }

    pub(super) fn waiting(&self, slot: Slot) -> Option<Request> {
        self.transactions[slot].waiting
    }

    pub(super) fn start(&mut self, slot: Slot, target: Target, mode: Mode) {
        self.arrivals += 1;
        self.transactions[slot].waiting = Some(Request { target, mode, arrival: self.arrivals, blockers: 0 });
    }

    /// Removes the waiting request of a transaction. The edges from the request become stale.
    pub(super) fn stop(&mut self, slot: Slot) -> Option<Request> {
        self.transactions[slot].waiting.take()
    }

    /// Adds an edge from the request of `waiter` to `blocker`. If `queued` is true, the edge is to the
    /// waiting request of `blocker`, else to a lock that `blocker` holds.
    pub(super) fn add(&mut self, waiter: Slot, blocker: Slot, queued: bool) {
        let Some(request) = &mut self.transactions[waiter].waiting else { return };
        request.blockers += 1;
        let edge = Edge { waiter, arrival: request.arrival, queued };
        if self.transactions[blocker].blocked.len() >= self.transactions[blocker].tidy_at {
            self.tidy(blocker);
        }
        self.transactions[blocker].blocked.push(edge);
        self.edges += 1;
    }

    /// Drops stale edges, so that a long transaction does not accumulate the edges of all requests that were
    /// withdrawn.
    fn tidy(&mut self, blocker: Slot) {
        let mut blocked = mem::take(&mut self.transactions[blocker].blocked);
        let before = blocked.len();
        blocked.retain(|edge| self.is_alive(edge));
        self.edges -= before - blocked.len();
        self.transactions[blocker].tidy_at = blocked.len() * 2 + 16;
        self.transactions[blocker].blocked = blocked;
    }

    fn is_alive(&self, edge: &Edge) -> bool {
        self.transactions[edge.waiter].waiting.is_some_and(|request| request.arrival == edge.arrival)
    }

    /// Records that the request of a transaction was granted. The requests that waited for it now wait for
    /// the lock.
    pub(super) fn hold(&mut self, slot: Slot) {
        for edge in &mut self.transactions[slot].blocked {
            edge.queued = false;
        }
    }

    /// Drops the edges to a transaction, or only those to its waiting request if `only_queued` is true.
    /// Appends requests without further edges to `ready`, with their arrival numbers.
    pub(super) fn unblock(&mut self, slot: Slot, only_queued: bool, ready: &mut Vec<(u64, Slot)>) {
        let mut blocked = mem::take(&mut self.transactions[slot].blocked);
        let before = blocked.len();
        blocked.retain(|edge| {
            if only_queued && !edge.queued {
                return true;
            }
            let waiting = &mut self.transactions[edge.waiter].waiting;
            if let Some(request) = waiting.as_mut().filter(|request| request.arrival == edge.arrival) {
                request.blockers -= 1;
                if request.blockers == 0 {
                    ready.push((request.arrival, edge.waiter));
                }
            }
            false
        });
        self.edges -= before - blocked.len();
        self.transactions[slot].blocked = blocked;
    }

    /// Clears the marks of the last search.
    pub(super) fn mark_nobody(&mut self) {
        self.searches += 1;
    }

    /// Marks every transaction that waits for `target`, directly or transitively. If `older` is true, only
    /// paths through transactions older than `target` count.
    pub(super) fn mark_waiting_for(&mut self, target: Slot, older: bool) {
        self.mark_nobody();
        let limit = older.then(|| self.transactions[target].seniority());
        let mut frontier = mem::take(&mut self.frontier);
        frontier.clear();
        frontier.push(target);
        let mut next = 0;
        while let Some(&slot) = frontier.get(next) {
            next += 1;
            let blocked = mem::take(&mut self.transactions[slot].blocked);
            for edge in &blocked {
                let waiter = &mut self.transactions[edge.waiter];
                let alive = waiter.waiting.is_some_and(|request| request.arrival == edge.arrival);
                let counts = limit.is_none_or(|limit| waiter.seniority() <= limit);
                if alive && waiter.search != self.searches && counts {
                    waiter.search = self.searches;
                    waiter.via = (slot != target).then_some(slot);
                    frontier.push(edge.waiter);
                }
            }
            self.transactions[slot].blocked = blocked;
        }
        self.frontier = frontier;
    }

    /// Whether the last search marked this transaction.
    pub(super) fn is_marked(&self, slot: Slot) -> bool {
        self.transactions[slot].search == self.searches
    }

    /// Returns the youngest transaction on the path on which the last search found `slot`.
    pub(super) fn youngest_from(&self, slot: Slot) -> Slot {
        let mut youngest = slot;
        let mut here = slot;
        while let Some(next) = self.transactions[here].via {
            if self.transactions[next].seniority() > self.transactions[youngest].seniority() {
                youngest = next;
            }
            here = next;
        }
        youngest
    }

    /// Returns every edge.
    pub(super) fn edges(&self) -> Vec<WaitsFor> {
        let of = |(blocker, slot): (&TxnId, &Slot)| {
            let alive = self.transactions[*slot].blocked.iter().filter(|edge| self.is_alive(edge));
            let edge = |edge: &Edge| {
                let waiter = &self.transactions[edge.waiter];
                WaitsFor { waiter: waiter.id, age: waiter.age, blocker: *blocker }
            };
            alive.map(edge).collect::<Vec<_>>()
        };
        let mut edges: Vec<WaitsFor> = self.slots.iter().flat_map(of).collect();
        edges.sort_unstable();
        edges
    }

    /// Returns the transactions that wait for this one, directly.
    pub(super) fn waiters_of(&self, id: TxnId) -> impl Iterator<Item = TxnId> {
        let blocked = self.find(id).map(|slot| &self.transactions[slot].blocked[..]).unwrap_or_default();
        let alive = blocked.iter().filter(|edge| self.is_alive(edge));
        alive.map(|edge| self.transactions[edge.waiter].id)
    }

    /// Returns the memory of the transactions and edges in use, in bytes, without the lists of their locks.
    pub(super) fn bytes(&self) -> usize {
        let transaction = size_of::<Transaction>() + size_of::<(TxnId, Slot)>() * 2;
        self.transactions.used() * transaction + self.edges * size_of::<Edge>()
    }
}
