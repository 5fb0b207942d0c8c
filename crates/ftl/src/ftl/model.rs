//! Scale models of a drive, for policies that try other policies on a sample of the pages.

use super::Ftl;
use super::sink::CountingSink;
use crate::collect::Collect;
use crate::config::FtlConfig;
use crate::placement::{Model, ModelConfig, PlacementConfig, PlacementPolicy};
use fulgurite_base::StreamId;

impl Ftl {
    /// Gives the placement policy the models that it wants.
    pub(super) fn provide_models(&mut self) {
        let wanted = self.placer.models();
        if !wanted.is_empty() {
            let models = wanted.into_iter().map(|wanted| ScaleModel::of(&self.config, wanted));
            self.placer.receive(models.collect());
        }
    }
}

/// A translation layer whose operations are only counted.
#[derive(Clone, Debug)]
struct ScaleModel {
    ftl: Ftl,
    sink: CountingSink,
}

impl ScaleModel {
    /// Creates the model that a policy of the drive `of` wants; `None` if it has no room for the streams.
    fn of(of: &FtlConfig, wanted: ModelConfig) -> Option<Box<dyn Model>> {
        let Collect { victim, reserve, .. } = &of.collect;
        let collect = Collect {
            placement: PlacementConfig::Custom(wanted.placement),
            victim: victim.clone(),
            reserve: *reserve,
            ..Collect::PLAIN
        };
        let plain = FtlConfig::plain(wanted.logical_pages, wanted.segments, wanted.segment_pages);
        let ftl = Ftl::new(FtlConfig { collect, ..plain }).ok()?;
        Some(Box::new(ScaleModel { ftl, sink: CountingSink::default() }))
    }
}

impl Model for ScaleModel {
    fn write(&mut self, lpn: u32) {
        self.ftl.write(lpn, 1, StreamId(0), &mut self.sink);
    }

    fn trim(&mut self, lpn: u32) {
        self.ftl.trim(lpn);
    }

    fn programs(&self) -> u64 {
        self.sink.programs
    }

    fn bytes(&self) -> usize {
        self.ftl.bytes()
    }

    fn boxed_clone(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }
}
