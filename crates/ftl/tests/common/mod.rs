//! A sink that several test files use.

use fulgurite_base::Ppn;
use fulgurite_ftl::{FlashSink, SegmentId};

/// The programmed pages, each with the source of its copy; `None` for a host write.
#[derive(Default)]
pub(crate) struct Programs(pub Vec<(Ppn, Option<Ppn>)>);

impl FlashSink for Programs {
    fn read(&mut self, _: Ppn) {}

    fn program(&mut self, to: Ppn, from: Option<Ppn>) {
        self.0.push((to, from));
    }

    fn erase(&mut self, _: SegmentId) {}
}
