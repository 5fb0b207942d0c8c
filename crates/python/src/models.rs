//! Exports the models of write amplification: the closed forms, and the model of MiDAS (FAST 2024).

use crate::errors::of_stack;
use crate::watched::watched;
use fulgurite_ftl::analytic;
use fulgurite_ftl::placement::midas::model::{
    Chain, Hot, LastGroup, Learned, Lifetimes as Inner, Prediction,
};
use fulgurite_ftl::placement::midas::{MidasConfig, Space};
use fulgurite_stack::StackError;
use pyo3::prelude::*;

fn refused(sentence: String) -> PyErr {
    of_stack(StackError::Request(sentence))
}

fn spare(rho: f64) -> PyResult<f64> {
    match rho > 0.0 && rho.is_finite() {
        true => Ok(rho),
        false => Err(refused(format!(
            "rho={rho} leaves no spare space for collection; accepted: more than 0, like 0.07"
        ))),
    }
}

#[pyfunction]
fn waf_fifo(rho: f64) -> PyResult<f64> {
    spare(rho).map(analytic::waf_fifo)
}

#[pyfunction]
fn waf_random(rho: f64) -> PyResult<f64> {
    spare(rho).map(analytic::waf_random)
}

#[pyfunction]
fn waf_greedy(rho: f64, segment_pages: u32) -> PyResult<f64> {
    // Limits the size of a segment, because the computation sums over its pages.
    if !(2..=1 << 24).contains(&segment_pages) {
        return Err(refused(format!("segment_pages={segment_pages} is out of range; accepted: 2 to 2^24")));
    }
    analytic::waf_greedy(spare(rho)?, segment_pages).ok_or_else(|| {
        refused(format!(
            "rho={rho} with segments of {segment_pages} pages has no solution; accepted: less spare, or larger segments"
        ))
    })
}

#[pyfunction]
fn waf_fifo_two_classes(rho: f64, hot_writes: f64, hot_pages: f64) -> PyResult<f64> {
    for (name, share) in [("hot_writes", hot_writes), ("hot_pages", hot_pages)] {
        if !(0.0..=1.0).contains(&share) {
            return Err(refused(format!("{name}={share} is not a share; accepted: 0 to 1")));
        }
    }
    let waf = analytic::waf_fifo_two_classes(1.0 + spare(rho)?, hot_writes, hot_pages);
    waf.ok_or_else(|| {
        refused(format!(
            "rho={rho}, hot_writes={hot_writes}, hot_pages={hot_pages} have no solution; accepted: more spare"
        ))
    })
}

/// The distribution of the lifetimes of pages, in host page writes.
#[pyclass(frozen, module = "fulgurite._native")]
struct Lifetimes(Inner);

#[pymethods]
impl Lifetimes {
    #[new]
    fn new(bucket: u32, counts: Vec<u64>, longer: Vec<u64>, beyond: u64) -> PyResult<Lifetimes> {
        let all = [&counts, &longer].into_iter().flatten().chain([&beyond]);
        if all.copied().try_fold(0u64, u64::checked_add).is_none() {
            return Err(refused(
                "the counts add up to more than 2^64 - 1; accepted: smaller counts".to_owned(),
            ));
        }
        if !longer.is_empty() && longer.len() != counts.len() {
            return Err(refused(format!(
                "longer has {} buckets and counts {}; accepted: as many, or none",
                longer.len(),
                counts.len()
            )));
        }
        Inner::from_counts(bucket, &counts, &longer, beyond).map(Lifetimes).ok_or_else(|| {
            refused(
                "there is no interval between writes; accepted: a bucket of at least one page write, \
                 and counts that are not all zero"
                    .to_owned(),
            )
        })
    }

    #[getter]
    fn range(&self) -> f64 {
        self.0.range()
    }

    fn survival(&self, time: f64) -> f64 {
        self.0.survival(time)
    }

    fn valid_among_last(&self, time: f64) -> f64 {
        self.0.valid_among_last(time)
    }
}

/// A prediction of the model. It consists of the write amplification, the valid shares of G1 … GN at
/// collection, and for HOT its share of the host writes and its valid share. MiDAS keeps hot pages in HOT,
/// and all other pages in the groups G1 … GN.
type Predicted = (f64, Vec<f64>, (f64, f64));

fn predicted(prediction: Prediction) -> Predicted {
    (prediction.waf, prediction.valid, prediction.hot)
}

fn last(segment_pages: u32, greedy: bool) -> LastGroup {
    if greedy { LastGroup::Greedy { segment_pages } } else { LastGroup::Fifo }
}

/// Predicts the write amplification for groups of these sizes in segments. Returns None if the valid pages do
/// not fit into the groups, or if a page would stay in them beyond the range of the lifetimes.
#[pyfunction]
#[pyo3(signature = (lifetimes, *, sized, hot, segments, segment_pages, valid_pages, greedy, hot_class))]
#[allow(clippy::too_many_arguments)] // all are keyword arguments in Python
fn midas_predict(
    lifetimes: &Lifetimes,
    sized: Vec<u32>,
    hot: u32,
    segments: u32,
    segment_pages: u32,
    valid_pages: f64,
    greedy: bool,
    hot_class: f64,
) -> Option<Predicted> {
    let pages = |segments: u32| f64::from(segments) * f64::from(segment_pages);
    let chain = Chain {
        hot: if hot == 0 { Hot::Off } else { Hot::Pages(pages(hot)) },
        sized: sized.into_iter().map(pages).collect(),
        pages: pages(segments),
        valid: valid_pages,
        last: last(segment_pages, greedy),
        hot_class,
        half_segment: f64::from(segment_pages) / 2.0,
        still: 0.0,
        learned: Learned::NOTHING,
    };
    chain.predict(&lifetimes.0).map(predicted)
}

/// Returns the sizes in segments of HOT and of G1 … G(N−1) with the lowest predicted write amplification.
#[pyfunction]
#[pyo3(signature = (lifetimes, *, segments, segment_pages, valid_pages, greedy, hot_class, groups))]
#[allow(clippy::too_many_arguments)]
fn midas_select(
    py: Python<'_>,
    lifetimes: &Lifetimes,
    segments: u32,
    segment_pages: u32,
    valid_pages: f64,
    greedy: bool,
    hot_class: f64,
    groups: usize,
) -> PyResult<Option<(u32, Vec<u32>, Predicted)>> {
    let MidasConfig { gain, stop, .. } = MidasConfig::default();
    let space = Space {
        segments,
        segment_pages,
        valid: valid_pages,
        last: last(segment_pages, greedy),
        hot_class,
        hot: true,
        still: 0.0,
        learned: Learned::NOTHING,
        groups,
        gain: gain.as_f64(),
        stop,
    };
    let lifetimes = lifetimes.0.clone();
    let chosen = watched(py, None, move |_| Ok(space.select(&lifetimes)))?;
    Ok(chosen.map(|chosen| (chosen.hot, chosen.sized, predicted(chosen.prediction))))
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Lifetimes>()?;
    module.add_function(wrap_pyfunction!(waf_fifo, module)?)?;
    module.add_function(wrap_pyfunction!(waf_random, module)?)?;
    module.add_function(wrap_pyfunction!(waf_greedy, module)?)?;
    module.add_function(wrap_pyfunction!(waf_fifo_two_classes, module)?)?;
    module.add_function(wrap_pyfunction!(midas_predict, module)?)?;
    module.add_function(wrap_pyfunction!(midas_select, module)?)
}
