//! Single: one read is exchanged for one write.
//!
//! What database pools do when no cleaner has run ahead ("single page flush"): the victim frame is
//! written if it is dirty, the miss waits for that, and the frame is evicted. O(1). It uses
//! neither the drive's concurrency nor its asymmetry, and is the baseline of the others.

use super::{Order, Plan};
use crate::FrameTable;

pub(super) fn plan(mut order: Order, frames: &FrameTable, plan: &mut Plan) {
    plan.evict = order.next();
    plan.write.extend(plan.evict.filter(|victim| frames.is_dirty(*victim)));
}
