//! Adapts a placement policy in Python to the interface of the FTL. The policy chooses the stream of each
//! written page, and is notified of writes and trims.

use super::own::{Own, is_ending};
use fulgurite_base::StreamId;
use fulgurite_ftl::SegmentTable;
use fulgurite_ftl::placement::{
    AnyPlacement, CustomPlacement, DriveShape, PlacementConfig, PlacementPolicy, WriteContext,
};
use pyo3::prelude::*;
use std::sync::Arc;

/// The policy as the configuration of a drive, before a run begins.
#[derive(Debug)]
struct Config {
    own: Arc<Own>,
    streams: u16,
}

/// Creates the configuration of a drive with the policy.
pub(super) fn config(own: &Arc<Own>, streams: u16) -> PlacementConfig {
    PlacementConfig::Custom(Arc::new(Config { own: Arc::clone(own), streams }))
}

/// The policy of a run that is executed.
struct Policy {
    own: Arc<Own>,
    object: Py<PyAny>,
    streams: u16,
    /// The Python class for the context of a write.
    write: Py<PyAny>,
}

impl Clone for Policy {
    /// Copies the state of the policy too, because a drive that is shared by several runs is cloned with its
    /// policy.
    fn clone(&self) -> Policy {
        let (object, write) = self.own.ask(|py| {
            let copy = py.import("copy")?.getattr("deepcopy")?;
            Ok((copy.call1((&self.object,))?.unbind(), self.write.clone_ref(py)))
        });
        Policy { own: Arc::clone(&self.own), object, streams: self.streams, write }
    }
}

impl Policy {
    fn described<'py>(
        &self,
        py: Python<'py>,
        context: &WriteContext,
        segments: &SegmentTable,
    ) -> PyResult<Bound<'py, PyAny>> {
        let from = context.segment.map(|segment| (segments.stream(segment).0, segments.opened_at(segment)));
        let (stream, opened_at) = from.unzip();
        self.write.bind(py).call1((
            context.lpn,
            context.copied,
            context.hint.0,
            segments.now(),
            stream,
            opened_at,
        ))
    }
}

impl CustomPlacement for Config {
    fn name(&self) -> &str {
        &self.own.name
    }

    fn text(&self) -> String {
        self.own.text.clone()
    }

    fn streams(&self) -> u16 {
        self.streams
    }

    fn start(&self, drive: &DriveShape) -> Box<dyn AnyPlacement> {
        let (object, write) = self.own.ask(|py| {
            let module = py.import("fulgurite.policies")?;
            let drive =
                module.getattr("Drive")?.call1((drive.logical_pages, drive.segments, drive.segment_pages))?;
            Ok((self.own.make.bind(py).call1((drive,))?.unbind(), module.getattr("Write")?.unbind()))
        });
        Box::new(Policy { own: Arc::clone(&self.own), object, streams: self.streams, write })
    }
}

impl PlacementPolicy for Policy {
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        if is_ending() {
            return StreamId(0);
        }
        let accepted = format!("0 to {}", self.streams - 1);
        let stream: u64 = self.own.answer("place", &accepted, |py| {
            let write = self.described(py, context, segments)?;
            self.object.bind(py).call_method1("place", (write,))
        });
        match u16::try_from(stream).ok().filter(|stream| *stream < self.streams) {
            Some(stream) => StreamId(stream),
            None => self
                .own
                .refuse(&format!("place() gives stream {stream} of {}; accepted: {accepted}", self.streams)),
        }
    }

    fn written(&mut self, context: &WriteContext, to: StreamId, segments: &SegmentTable) {
        if !is_ending() {
            self.own.ask(|py| {
                let write = self.described(py, context, segments)?;
                self.object.bind(py).call_method1("written", (write, to.0)).map(drop)
            });
        }
    }

    fn trimmed(&mut self, lpn: u32) {
        if !is_ending() {
            self.own.ask(|py| self.object.bind(py).call_method1("trimmed", (lpn,)).map(drop));
        }
    }
}
