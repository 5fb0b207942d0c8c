//! Builds a run of `pool`, which executes a workload against a buffer pool.

use super::Asked;
use super::measured::Measured;
use super::stack::stack;
use super::trace_length::within_trace;
use crate::StackError;
use crate::run::{
    Arrivals, ChosenWriteBack, Load, Measure, Policies, PoolStage, Requested, Rows, Run, Sampling, Sizes,
    passes_over,
};
use crate::workload::{AddressMap, Origin, View, Workload, Workloads};
use fulgurite_base::units::{Portion, Share};
use fulgurite_pool::ReplacementConfig;

/// The default numbers of pages and requests of a generated workload. The published comparison of ACE (Papon
/// and Athanassoulis, ICDE 2023) with LRU uses them.
const DEFAULT_PAGES: u64 = 102_400;
const DEFAULT_OPS: u64 = 1_000_000;
/// The default size of the pool.
const USUAL_FRAMES: Portion = Portion::percent(6);

pub(super) fn pool(mut asked: Asked, workloads: &mut Workloads) -> Result<Run, StackError> {
    let (page_bytes, seed) = (asked.page_bytes, asked.seed);
    let form = asked.trace_form();
    let workload = workloads.get(&asked.workload, form)?;
    let usual = if asked.curve { Portion::ALL } else { USUAL_FRAMES };
    let frames = asked.frames.unwrap_or(usual);
    // `stack` consumes `asked`, so the settings of the pool are taken out first.
    let replacement =
        asked.replacement.take().ok_or_else(|| StackError::request("--replacement is missing"))?;
    let write_back = asked.write_back.take();
    let prefetch = asked.prefetch.take().ok_or_else(|| StackError::request("--prefetch is missing"))?;
    let (ops, skip, pages) = (asked.ops, asked.skip, asked.pages);
    let (users, cpu_per_request, cores) = (asked.users.unwrap_or(1), asked.cpu_per_request, asked.cores);
    let sampling = sampling(&asked, &replacement)?;
    let mut stack = stack(asked)?;
    let device_pages = u64::from(stack.device_pages_per(page_bytes)?);
    // Without a drive the number of pages matters only if frames are a share of it. A curve from one pass over
    // the trace finds the number itself.
    let needs_pages = !stack.device.is_none()
        || replacement.needs_future() && sampling.is_none_or(|sampling| sampling == Sampling::Exact)
        || match sampling {
            None => !matches!(frames, Portion::Count(_)),
            Some(Sampling::Exact) => !replacement.is_lru(),
            Some(_) => false,
        };
    let pages = pool_pages(&workload, needs_pages, page_bytes, pages)?;
    let ops = pool_ops(&workload, View::Pool { page_bytes, pages }, skip, ops)?;
    stack.make_room_for(pages.saturating_mul(device_pages));
    // Check the drive here, because the write-back policy may measure it below.
    if !stack.device.is_none() {
        stack.check_storage()?;
    }
    let write_back = write_back.ok_or_else(|| StackError::request("--write-back is missing"))?;
    let write_back = ChosenWriteBack::on(
        write_back,
        Measured { stack: &stack, page_bytes, seed, is_dry: workloads.is_dry() },
    )?;
    let rows = match sampling {
        None => Rows::Run,
        // The number of frames is that of the largest pool, if the number of pages is known by now.
        Some(sampling) if pages < u64::MAX => {
            let largest = Portion::Count(u64::from(frames_of(frames, pages)?));
            Rows::Sizes(Sizes { largest, sampling })
        }
        Some(sampling) => Rows::Sizes(Sizes { largest: frames, sampling }),
    };
    let frames = match rows {
        Rows::Sizes(_) if pages == u64::MAX => 1,
        _ => frames_of(frames, pages)?,
    };
    stack.pool = Some(PoolStage {
        policies: Policies { replacement, prefetch },
        write_back,
        frames,
        page_bytes,
        cpu_per_request,
        cores,
    });
    let arrivals = Arrivals::Closed { users };
    let load = Requested { workload, pages, addresses: AddressMap::Scale, arrivals, skip, ops };
    Ok(Run { stack, load: Load::Requests(load), measure: Measure { rows, ..Measure::default() }, seed })
}

/// Returns the requests from which the curve of misses is made; `None` if no curve was asked for.
fn sampling(asked: &Asked, replacement: &ReplacementConfig) -> Result<Option<Sampling>, StackError> {
    match (asked.curve, asked.sample) {
        (false, Some(_)) => Err(StackError::request(
            "--sample is the share of pages for --curve; accepted: --curve beside it",
        )),
        (false, None) => Ok(None),
        (true, Some(1)) => Ok(Some(Sampling::Exact)),
        (true, Some(divisor)) => Ok(Some(Sampling::Pages(divisor))),
        (true, None) if replacement.is_lru() => Ok(Some(Sampling::Exact)),
        (true, None) => Ok(Some(Sampling::Fitted)),
    }
}

/// Returns the number of pages of a pool run: that of the trace, or `asked`. `u64::MAX` means that the number
/// is not needed.
fn pool_pages(
    workload: &Workload,
    is_needed: bool,
    page_bytes: u32,
    asked: Option<u64>,
) -> Result<u64, StackError> {
    match &workload.origin {
        Origin::Generator(_) => Ok(asked.unwrap_or(DEFAULT_PAGES)),
        Origin::Trace(_) => {
            let known = match is_needed {
                true => workload.bind(View::Pool { page_bytes, pages: 0 })?.distinct_pages(),
                false => None,
            };
            if asked.is_some() {
                let has =
                    known.map_or_else(|| "its own".to_owned(), |pages| format!("{pages} distinct pages"));
                return Err(StackError::request(format!(
                    "--pages does not go with a trace, which has {has}; leave it out"
                )));
            }
            Ok(known.unwrap_or(u64::MAX))
        }
    }
}

/// Returns the number of requests of a pool run after the skipped ones.
fn pool_ops(workload: &Workload, view: View, skip: u64, asked: Option<u64>) -> Result<u64, StackError> {
    match (&workload.origin, view) {
        (Origin::Generator(_), _) => Ok(asked.unwrap_or(DEFAULT_OPS)),
        // The length of a trace that is read during the run is not known yet, so the number is not checked
        // here.
        (Origin::Trace(_), View::Pool { pages: u64::MAX, .. }) => Ok(asked.unwrap_or(u64::MAX)),
        (Origin::Trace(_), view) => {
            let has = workload.bind(view)?.page_count().unwrap_or(u64::MAX);
            if skip >= has && has > 0 {
                return Err(passes_over(skip, has));
            }
            within_trace(asked, has - skip, "page requests").map_err(|error| match skip {
                0 => error,
                skip => StackError::request(format!("{error}, behind --skip {skip}")),
            })
        }
    }
}

/// Returns the number of frames of a pool over `pages` pages.
pub(super) fn frames_of(asked: Portion, pages: u64) -> Result<u32, StackError> {
    let frames = match asked {
        Portion::Count(frames) => frames,
        Portion::Share(Share::ZERO) => 0,
        // A share of few pages may round to zero, but a pool needs at least one frame.
        share => share.of(pages).max(1),
    };
    let is = if matches!(asked, Portion::Count(_)) { String::new() } else { format!(" is {frames} frames") };
    let refused = |why: &str| {
        StackError::request(format!(
            "--frames {asked}{is} for {pages} pages: {why}; accepted: 1 to {}",
            pages.min(u64::from(u32::MAX))
        ))
    };
    match u32::try_from(frames) {
        Ok(0) => Err(refused("a pool needs at least one frame")),
        _ if frames > pages => Err(refused("some frames would never be used")),
        Ok(frames) => Ok(frames),
        Err(_) => Err(refused("a pool numbers its frames in 32 bits")),
    }
}
