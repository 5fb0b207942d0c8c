//! Page accesses of transactions: tables as runs of pages, each with a level of index pages above its leaves,
//! and the queue of accesses of the current transaction.
//!
//! These replace an engine: they give the pages that an engine would request from its buffer pool, in order,
//! without its log, locks and page splits. Root pages are omitted, because they never miss.

use crate::{Op, Request};
use std::collections::VecDeque;

/// Leaves below one index page: keys and pointers of about 20 bytes in a page of 4 KiB.
const FANOUT: u64 = 200;

/// A table: index pages, then leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    first: u64,
    index: u64,
    /// Leaf pages, at least one.
    pub leaves: u64,
}

/// Assigns pages to tables.
pub(super) struct Layout {
    next: u64,
    pages: u64,
}

impl Layout {
    pub(crate) fn new(pages: u64) -> Layout {
        Layout { next: 0, pages }
    }

    /// A table that takes `share` parts of a thousand of the pages.
    pub(crate) fn table(&mut self, share: f64) -> Table {
        let pages = ((self.pages as f64 * share / 1000.0) as u64).max(2).min(self.pages - self.next);
        let index = pages.div_ceil(FANOUT + 1);
        let table = Table { first: self.next, index, leaves: (pages - index).max(1) };
        self.next += pages;
        table
    }
}

/// The remaining accesses of the current transaction.
#[derive(Clone, Debug, Default)]
pub(super) struct Accesses(VecDeque<Request>);

impl Accesses {
    pub(crate) fn pop(&mut self) -> Option<Request> {
        self.0.pop_front()
    }

    /// Looks a row up in the index and reads or changes its page. `row` is the row's relative place in the
    /// table, from 0 to 1.
    pub(crate) fn row(&mut self, table: Table, row: f64, op: Op) {
        let leaf = ((table.leaves as f64 * row) as u64).min(table.leaves - 1);
        self.leaf(table, leaf, op);
    }

    /// Looks a leaf up in the index, by number, and reads or changes it.
    pub(crate) fn leaf(&mut self, table: Table, leaf: u64, op: Op) {
        let leaf = leaf % table.leaves;
        self.0.push_back(Request::of_page(Op::Read, table.first + leaf / FANOUT % table.index));
        self.0.push_back(Request::of_page(op, table.first + table.index + leaf));
    }

    /// Reads consecutive leaves, beginning at the row's.
    pub(crate) fn scan(&mut self, table: Table, row: f64, leaves: u64) {
        let leaf = ((table.leaves as f64 * row) as u64).min(table.leaves - 1);
        self.leaf(table, leaf, Op::Read);
        // Leaves are linked, so the following ones need no index page.
        for next in 1..leaves {
            let page = table.first + table.index + (leaf + next) % table.leaves;
            self.0.push_back(Request::of_page(Op::Read, page));
        }
    }
}
