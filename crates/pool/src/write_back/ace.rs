//! ACE: write as many dirty pages as the drive writes at once, evict one.
//!
//! "ACEing the Bufferpool Management Paradigm for Modern Storage Devices" (ICDE 2023). Where the
//! victim frame is clean it is evicted: exactly the replacement policy. Where it is dirty, the
//! first n_w dirty frames *of the virtual eviction order* are written concurrently, become clean
//! and stay; the next misses then find clean victims. Cost: the order is read until n_w dirty
//! frames are found, which is long where dirty pages are rare. Without prefetching, one frame is
//! evicted, so hits and misses stay those of the replacement policy wherever it ignores dirtiness.

use super::{Order, Plan};
use crate::FrameTable;

pub(super) fn plan(n_w: u32, mut order: Order, frames: &FrameTable, plan: &mut Plan) {
    plan.evict = order.next();
    let Some(victim) = plan.evict.filter(|victim| frames.is_dirty(*victim)) else { return };
    plan.write.push(victim);
    plan.write.extend(order.filter(|frame| frames.is_dirty(*frame)).take(n_w as usize - 1));
}
