//! Maps the accesses of transactions to pages. A table is a run of pages, with a level of index pages above
//! its leaves. A queue has the page accesses of the current transaction.
//!
//! This module replaces an engine. It gives the pages that an engine would request from its buffer pool, in
//! order, without a log, locks and page splits. Root pages are omitted, because they never miss in a buffer
//! pool.

use crate::{Op, Request};
use std::collections::VecDeque;

/// The number of leaves below one index page: keys and pointers of about 20 bytes in a page of 4 KiB.
const FANOUT: u64 = 200;

/// A table, which consists of index pages and, after them, leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    first: u64,
    index: u64,
    /// The number of leaf pages, at least one.
    pub leaves: u64,
}

/// Allocates consecutive pages to tables.
pub(super) struct Layout {
    next: u64,
    pages: u64,
}

impl Layout {
    pub(crate) fn new(pages: u64) -> Layout {
        Layout { next: 0, pages }
    }

    /// Allocates the next `share` thousandths of the pages to a table.
    pub(crate) fn table(&mut self, share: f64) -> Table {
        let pages = ((self.pages as f64 * share / 1000.0) as u64).max(2).min(self.pages - self.next);
        let index = pages.div_ceil(FANOUT + 1);
        let table = Table { first: self.next, index, leaves: (pages - index).max(1) };
        self.next += pages;
        table
    }
}

/// The accesses that remain of the current transaction.
#[derive(Clone, Debug, Default)]
pub(super) struct Accesses(VecDeque<Request>);

impl Accesses {
    pub(crate) fn pop(&mut self) -> Option<Request> {
        self.0.pop_front()
    }

    /// Looks up a row in the index, then reads or writes its leaf. `row` is the row's relative position in
    /// the table, from 0 to 1.
    pub(crate) fn row(&mut self, table: Table, row: f64, op: Op) {
        let leaf = ((table.leaves as f64 * row) as u64).min(table.leaves - 1);
        self.leaf(table, leaf, op);
    }

    /// Looks up a leaf in the index, by number, then reads or writes the leaf.
    pub(crate) fn leaf(&mut self, table: Table, leaf: u64, op: Op) {
        let leaf = leaf % table.leaves;
        self.0.push_back(Request::of_page(Op::Read, table.first + leaf / FANOUT % table.index));
        self.0.push_back(Request::of_page(op, table.first + table.index + leaf));
    }

    /// Reads `leaves` consecutive leaves, beginning at the row's leaf.
    pub(crate) fn scan(&mut self, table: Table, row: f64, leaves: u64) {
        let leaf = ((table.leaves as f64 * row) as u64).min(table.leaves - 1);
        self.leaf(table, leaf, Op::Read);
        // Leaves are linked, so the leaves after the first one need no index page.
        for next in 1..leaves {
            let page = table.first + table.index + (leaf + next) % table.leaves;
            self.0.push_back(Request::of_page(Op::Read, page));
        }
    }
}
