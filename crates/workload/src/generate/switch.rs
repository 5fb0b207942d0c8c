//! One workload, then another: `switch:A,B@N` is A for N requests and B from then on.

use super::{Generator, GeneratorConfig, Recipe, RequestSource, Space};
use crate::Request;
use fulgurite_base::{Declared, Opt, OptionHelp, Spec, SpecError, units};

/// Two workloads and how many requests come of the first.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// The first.
    pub first: Box<GeneratorConfig>,
    /// Requests of the first.
    pub after: u64,
    /// The second.
    pub second: Box<GeneratorConfig>,
}

/// What a `switch` without workloads would be; the command refuses it.
impl Default for SwitchConfig {
    fn default() -> SwitchConfig {
        let fio = |theta| Box::new(GeneratorConfig::FioU(super::zipf::FioConfig { theta }));
        SwitchConfig { first: fio(0.0), after: 0, second: fio(0.0) }
    }
}

/// All that follows the colon is one text, not `key=value`.
impl Declared for SwitchConfig {
    const OPTIONS: &'static [Opt<SwitchConfig>] = &[];

    fn with_options(self, spec: &mut Spec) -> Result<SwitchConfig, SpecError> {
        let text = spec.take_text(Spec::NESTED);
        let text =
            text.ok_or_else(|| SpecError::new("switch names no workloads; write switch:ycsb-a,tpcc@1.1G"))?;
        let refused = || {
            SpecError::new(format!(
                "`switch:{text}` is not a change of workload; write switch:ycsb-a,tpcc@1.1G"
            ))
        };
        let (workloads, after) = text.rsplit_once('@').ok_or_else(refused)?;
        let names = Spec::split_list(workloads)?;
        let [first, second] = names.as_slice() else { return Err(refused()) };
        let (first, second) = (Box::new(first.parse()?), Box::new(second.parse()?));
        Ok(SwitchConfig { first, after: units::parse_count(after)?, second })
    }

    fn options_beside(&self, _: &SwitchConfig) -> String {
        format!("{},{}@{}", self.first, self.second, self.after)
    }

    fn describe_options(&self) -> Vec<OptionHelp> {
        Vec::new()
    }
}

impl Recipe for SwitchConfig {
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError> {
        // The times of the second workload would start from zero again.
        if self.first.is_timed() || self.second.is_timed() {
            return Err(SpecError::new(
                "switch does not go with workloads that have times; accepted: those without, like zipf and ycsb-a",
            ));
        }
        let Space { pages, page_bytes, seed, .. } = space;
        let start = |config: &GeneratorConfig| config.start(pages, page_bytes, seed);
        Ok(Generator::new(Switch {
            first: start(&self.first)?,
            left: self.after,
            second: start(&self.second)?,
        }))
    }

    fn writes_anything(&self) -> bool {
        self.after > 0 && self.first.writes_anything() || self.second.writes_anything()
    }

    fn trims_anything(&self) -> bool {
        self.first.trims_anything() || self.second.trims_anything()
    }

    fn shares_anything(&self) -> bool {
        self.first.shares_anything() || self.second.shares_anything()
    }

    fn keeps_writing(&self) -> bool {
        self.second.keeps_writing()
    }
}

/// Two workloads and how many requests of the first are left.
#[derive(Debug)]
struct Switch {
    first: Generator,
    left: u64,
    second: Generator,
}

impl RequestSource for Switch {
    fn request(&mut self) -> Request {
        if self.left == 0 {
            return self.second.request();
        }
        self.left -= 1;
        self.first.request()
    }
}
