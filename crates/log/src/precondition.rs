//! A layer and the drive below it in the state that measurements should start from: the layer was written to
//! for long, and the drive has seen what the layer does with that.

use crate::LogConfig;
use crate::tails::Tails;
use fulgurite_base::{Ppn, SpecError};
use fulgurite_device::StreamId;
use fulgurite_ssd::precondition::precondition;
use fulgurite_ssd::{CountingSink, FlashSink, Ftl, SegmentId, SimDrive, SsdConfig};

/// What the layer does below, in order.
#[derive(Default)]
struct Record(Vec<Below>);

enum Below {
    Write(Ppn),
    Discard(SegmentId),
}

impl FlashSink for Record {
    fn read(&mut self, _: Ppn) {}

    fn program(&mut self, ppn: Ppn, _: Option<Ppn>) {
        self.0.push(Below::Write(ppn));
    }

    fn erase(&mut self, segment: SegmentId) {
        self.0.push(Below::Discard(segment));
    }
}

impl LogConfig {
    /// The translation layers of a simulated drive and of a layer above it, brought where the drive's
    /// `precondition` says by writes to the layer.
    pub fn preconditioned(
        &self,
        drive: &SsdConfig,
        request_pages: u32,
        seed: u64,
    ) -> Result<(Option<Ftl>, Ftl), SpecError> {
        let config = self.ftl(drive.logical_pages(), drive.page_bytes)?;
        let (mut layer, hint) = (Ftl::new(config)?, StreamId::default());
        let goal = drive.precondition;
        let mut sink = CountingSink::default();
        let below = SimDrive::written_before(drive, |ftl| {
            let (mut record, mut tails) =
                (Record::default(), Tails::new(&layer, drive.ftl().placement.hints()));
            precondition(&mut layer, goal, request_pages, seed, |layer, lpn, pages| {
                layer.write(lpn, pages, hint, &mut record);
                for operation in record.0.drain(..) {
                    match operation {
                        Below::Write(ppn) => {
                            let stream = tails.wrote(layer, ppn, 1);
                            ftl.write(ppn.0, 1, stream, &mut sink);
                        }
                        Below::Discard(segment) if self.trim => {
                            let first = segment.0 * config.segment_pages;
                            (first..first + config.segment_pages).for_each(|page| ftl.trim(page));
                        }
                        Below::Discard(_) => {}
                    }
                }
                while let Some((stream, first, pages)) = tails.next_cut_short(layer) {
                    ftl.write(first.0, pages, stream, &mut sink);
                }
            });
        })?;
        if below.is_none() {
            precondition(&mut layer, goal, request_pages, seed, |layer, lpn, pages| {
                layer.write(lpn, pages, hint, &mut CountingSink::default());
            });
        }
        layer.start_anew(0);
        Ok((below, layer))
    }
}
