//! One workload, then another: `switch:A,B@N` is A for N requests and B from then on.

use super::{Generator, Make};
use crate::Request;
use fulgurite_base::{Spec, SpecError, units};

/// Two workloads and how many requests of the first are left.
#[derive(Clone, Debug)]
pub struct Switch {
    first: Generator,
    left: u64,
    second: Generator,
}

/// The two workloads and the number of requests that `text`, without `switch:`, names.
fn parse(text: &str) -> Result<(Spec, u64, Spec), SpecError> {
    let refused = || {
        SpecError::new(format!("`switch:{text}` is not a change of workload; write switch:ycsb-a,tpcc@1.1G"))
    };
    let (workloads, after) = text.rsplit_once('@').ok_or_else(refused)?;
    let names = Spec::split_list(workloads)?;
    let [first, second] = names.as_slice() else { return Err(refused()) };
    Ok((Spec::parse(first)?, units::parse_count(after)?, Spec::parse(second)?))
}

impl Switch {
    pub(super) fn from_spec(spec: &mut Spec, make: Make) -> Result<Generator, SpecError> {
        let named = spec.take_with(Spec::NESTED, parse)?;
        let (first, left, second) = named
            .ok_or_else(|| SpecError::new("switch names no workloads; write switch:ycsb-a,tpcc@1.1G"))?;
        let Make { pages, page_bytes, seed } = make;
        let generator = |spec| Generator::from_spec(spec, pages, page_bytes, seed);
        let (first, second) = (generator(first)?, generator(second)?);
        if first.is_timed() || second.is_timed() {
            return Err(SpecError::new(
                "switch does not go with workloads that have times; accepted: those without, like zipf and ycsb-a",
            ));
        }
        Ok(Generator::Switch(Box::new(Switch { first, left, second })))
    }

    pub(super) fn request(&mut self) -> Option<Request> {
        if self.left == 0 {
            return self.second.next();
        }
        self.left -= 1;
        self.first.next()
    }
}
