//! Adapts a victim policy in Python to the interface of the FTL. The policy picks one of the sealed segments
//! for collection.

use super::own::{Own, is_ending};
use fulgurite_ftl::victim::{AnyVictim, CustomVictim, VictimConfig, VictimPolicy};
use fulgurite_ftl::{SegmentId, SegmentTable};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::ops::Range;
use std::sync::Arc;

/// The policy as the configuration of a drive, before a run begins.
#[derive(Debug)]
struct Config(Arc<Own>);

/// Creates the configuration of a drive with the policy.
pub(super) fn config(own: &Arc<Own>) -> VictimConfig {
    VictimConfig::Custom(Arc::new(Config(Arc::clone(own))))
}

/// The policy of a run that is executed.
struct Policy {
    own: Arc<Own>,
    object: Py<PyAny>,
    /// The Python class for the state of a segment.
    segment: Py<PyAny>,
    /// The sealed segments, in the order in which they were sealed.
    sealed: Vec<SegmentId>,
    /// The maximum number of successive collections that free no page without a host write between them.
    patience: u32,
    /// The number of such collections in a row so far, and the time of the last, in host page writes.
    fruitless: (u32, u64),
}

impl Clone for Policy {
    /// Copies the state of the policy too, because a drive that is shared by several runs is cloned with its
    /// policy.
    fn clone(&self) -> Policy {
        let (object, segment) = self.own.ask(|py| {
            let copy = py.import("copy")?.getattr("deepcopy")?;
            Ok((copy.call1((&self.object,))?.unbind(), self.segment.clone_ref(py)))
        });
        let Policy { patience, fruitless, .. } = *self;
        Policy {
            own: Arc::clone(&self.own),
            object,
            segment,
            sealed: self.sealed.clone(),
            patience,
            fruitless,
        }
    }
}

impl CustomVictim for Config {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn text(&self) -> String {
        self.0.text.clone()
    }

    fn start(&self, segments: Range<u32>, segment_pages: u32) -> Box<dyn AnyVictim> {
        let own = Arc::clone(&self.0);
        // While the host waits, no page becomes invalid. A policy that picks each segment in turn finds any
        // segment with invalid pages long before this limit.
        let patience = 2 * segments.len() as u32 + 2;
        let (object, segment) = own.ask(|py| {
            let object = own.make.bind(py).call1((segments.len(), segment_pages))?;
            Ok((object.unbind(), py.import("fulgurite.policies")?.getattr("Segment")?.unbind()))
        });
        Box::new(Policy { own, object, segment, sealed: Vec::new(), patience, fruitless: (0, 0) })
    }
}

impl Policy {
    /// Counts collections of segments without invalid pages, and ends a run that would collect such segments
    /// for ever.
    fn count(&mut self, segment: SegmentId, table: &SegmentTable) {
        let (count, at) = self.fruitless;
        self.fruitless = match table.valid(segment) < table.segment_pages() {
            true => (0, table.now()),
            false if at == table.now() => (count + 1, at),
            false => (1, table.now()),
        };
        if self.fruitless.0 > self.patience {
            self.own.refuse(&format!(
                "pick() gives full segments, {} in a row, and no page is gained; accepted: segments with \
                 fewer `valid_pages` than `pages`",
                self.fruitless.0
            ));
        }
    }
}

impl VictimPolicy for Policy {
    fn sealed(&mut self, segment: SegmentId, _: &SegmentTable) {
        self.sealed.push(segment);
    }

    fn invalidated(&mut self, _: SegmentId, _: &SegmentTable) {}

    fn pick(&mut self, table: &SegmentTable) -> Option<SegmentId> {
        if self.sealed.is_empty() || is_ending() {
            return self.sealed.pop();
        }
        let picked: u32 = self.own.answer("pick", "the `number` of a segment", |py| {
            let segments = self.sealed.iter().map(|segment| {
                self.segment.bind(py).call1((
                    segment.0,
                    table.valid(*segment),
                    table.segment_pages(),
                    table.opened_at(*segment),
                    table.sealed_at(*segment),
                    table.erases(*segment),
                    table.stream(*segment).0,
                ))
            });
            let segments = PyList::new(py, segments.collect::<PyResult<Vec<_>>>()?)?;
            self.object.bind(py).call_method1("pick", (segments, table.now()))
        });
        match self.sealed.iter().position(|segment| segment.0 == picked) {
            Some(at) => {
                let segment = self.sealed.remove(at);
                self.count(segment, table);
                Some(segment)
            }
            None => self.own.refuse(&format!(
                "pick() gives segment {picked}, which is not one of the given segments; accepted: the \
                 `number` of one of them"
            )),
        }
    }

    fn remove(&mut self, segment: SegmentId, _: &SegmentTable) {
        self.sealed.retain(|sealed| *sealed != segment);
    }
}
