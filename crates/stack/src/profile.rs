//! Measures alpha, k_r and k_w of a drive, as the ACE study (Papon and Athanassoulis, ICDE 2023) does.
//!
//! On a preconditioned drive, k users read (or write) single pages at random, uniformly and without pause.
//! X(k) is the throughput of k users. X_max is the highest X(k) up to 256 users, or up to the queue depth if
//! the queue is shallower. k_r is the least number of users whose reads reach X(k) ≥ 0.95·X_max; k_w is the
//! same for writes. alpha is X_max of reads over X_max of writes. The choice of the threshold moves k by
//! 5–12 %, so k at 90 % is reported too. Little's law is checked on every measurement.

use crate::device::Observed;
use crate::memo::Memo;
use crate::open::DeviceUser;
use crate::progress::step;
use crate::{Stack, StackError};
use fulgurite_base::{Lpn, Nanos, Prng, units};
use fulgurite_device::{Command, Meter, Operation, Tag};
use std::collections::BTreeMap;

/// The largest number of users in the search for X_max.
const USERS_AT_MOST: u32 = 256;

/// The numbers of users that are always measured, for the curve.
const CURVE: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// An estimate of the largest number of measured points: those of the curve, and those of two binary searches
/// between two of its points.
const POINTS_AT_MOST: u64 = 20;

/// The warm-up and the measured time of a real drive, for one point of the curve.
const WARM_UP: Nanos = Nanos(300_000_000);
const WATCHED: Nanos = Nanos(1_000_000_000);

/// The throughput of reads, or of writes, of one size, by number of users.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plateau {
    /// X_max in requests per second.
    pub iops_max: f64,
    /// The least number of users that reach 95 % of X_max.
    pub k: u32,
    /// The least number of users that reach 90 % of X_max.
    pub k_90: u32,
    /// The pairs (users, requests per second) of the measured points, in ascending order of users.
    pub curve: Vec<(u32, f64)>,
}

/// The characteristics of a drive for one request size.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Profile {
    /// The size of a request in bytes.
    pub page_bytes: u32,
    /// The throughput of reads.
    pub reads: Plateau,
    /// The throughput of writes.
    pub writes: Plateau,
}

impl Profile {
    /// Returns alpha: X_max of reads over X_max of writes.
    pub(crate) fn alpha(&self) -> f64 {
        self.reads.iops_max / self.writes.iops_max
    }
}

/// Measures the throughput of reads and of writes.
pub(crate) fn profile(stack: &Stack, page_bytes: u32, seed: u64) -> Result<Profile, StackError> {
    Ok(Profile {
        page_bytes,
        reads: plateau(stack, page_bytes, false, seed)?,
        writes: plateau(stack, page_bytes, true, seed)?,
    })
}

/// Returns the throughput of reads or of writes. It is measured once for each stack, page size and seed.
pub(crate) fn plateau(
    stack: &Stack,
    page_bytes: u32,
    writes: bool,
    seed: u64,
) -> Result<Plateau, StackError> {
    static MEASURED: Memo<Result<Plateau, StackError>> = Memo::new();
    // The memo lasts as long as the process, so the key contains every value that changes the result.
    let key = format!("{} {page_bytes} {writes} {seed}", stack.canonical_storage());
    MEASURED.get(key, || measure(stack, page_bytes, writes, seed))
}

fn measure(stack: &Stack, page_bytes: u32, writes: bool, seed: u64) -> Result<Plateau, StackError> {
    let request_pages = stack.device_pages_per(page_bytes)?;
    let real = stack.device.is_real();
    // Each user has a command in the queue, so the queue depth limits the number of users.
    let most = stack.device.queue_depth().min(USERS_AT_MOST);
    let (label, what) = (&stack.device.label, if writes { "writes" } else { "reads" });
    let step = step(format!("measuring {what} of {label}"), POINTS_AT_MOST);
    let mut measured = BTreeMap::new();
    let mut at = |users: u32| -> Result<f64, StackError> {
        // Look the number of users up first, because the searches for k and k_90 often ask for the same one.
        if let Some(iops) = measured.get(&users) {
            return Ok(*iops);
        }
        let iops = stack.with_device(
            seed,
            request_pages,
            ClosedLoop { users, request_pages, writes, real, seed },
        )??;
        step.add(1);
        measured.insert(users, iops);
        Ok(iops)
    };
    // If the queue depth is less than 256, the curve ends at the queue depth.
    let mut curve = Vec::new();
    for users in CURVE.into_iter().filter(|users| *users < most).chain([most]) {
        curve.push((users, at(users)?));
    }
    let iops_max = curve.iter().map(|(_, iops)| *iops).fold(0.0, f64::max);
    let mut least = |share: f64| least(&curve, share * iops_max, &mut at);
    let (k, k_90) = (least(0.95)?, least(0.90)?);
    Ok(Plateau { iops_max, k, k_90, curve: measured.into_iter().collect() })
}

/// Returns the least number of users that reach the throughput `mark`. The closure `at` measures the
/// throughput of a number of users. `curve` has pairs (users, throughput) in ascending order of users, and at
/// least one of its points reaches the mark.
///
/// Throughput may fall again after its peak. Up to the first point of the curve at the mark it rises with
/// users. So a binary search between that point and the point before it finds the least number.
fn least<E>(curve: &[(u32, f64)], mark: f64, mut at: impl FnMut(u32) -> Result<f64, E>) -> Result<u32, E> {
    let first = curve.iter().position(|(_, reached)| *reached >= mark).unwrap_or(0);
    let mut below = first.checked_sub(1).map_or(0, |before| curve[before].0);
    let mut reaches = curve[first].0;
    while reaches - below > 1 {
        let middle = below.midpoint(reaches);
        if at(middle)? >= mark { reaches = middle } else { below = middle }
    }
    Ok(reaches)
}

/// A load of `users` that each keep one request outstanding.
struct ClosedLoop {
    users: u32,
    request_pages: u32,
    writes: bool,
    /// Whether the drive is real, so that its clock is the wall clock.
    real: bool,
    seed: u64,
}

impl DeviceUser for ClosedLoop {
    type Output = Result<f64, StackError>;

    fn with<D: Observed + 'static>(self, mut device: D) -> Self::Output {
        let (pages, page_bytes) = (device.caps().pages, u64::from(device.caps().page_bytes));
        let places = pages / u64::from(self.request_pages);
        if places == 0 {
            return Err(StackError::request(format!(
                "--page {} is larger than the drive, which has {}; accepted: a smaller page, or a larger drive",
                units::format_size(u64::from(self.request_pages) * page_bytes),
                units::format_size(pages * page_bytes)
            )));
        }
        let mut prng = Prng::new(self.seed, "profile");
        let mut submit = |device: &mut D, tag: u64| {
            let lpn = Lpn(prng.below(places) * u64::from(self.request_pages));
            let operation = if self.writes {
                Operation::write(lpn, self.request_pages)
            } else {
                Operation::read(lpn, self.request_pages)
            };
            device
                .submit(Command { tag: Tag(tag), operation })
                .map_err(|_| StackError::run("the queue is shallower than the device reported"))
        };
        // Warm up until the write buffer of the drive is full, because the buffer hides the flash until then.
        let warm_up = if self.writes { 16_000 } else { 1_000 } + 4 * u64::from(self.users);
        // A simulated drive is measured over a number of requests. A real drive is measured over a time,
        // since other programs may slow its requests.
        let (mut warm_up, requests) =
            if self.real { (u64::MAX, u64::MAX) } else { (warm_up, warm_up + 16_000) };
        let warm_up_ends = device.now() + WARM_UP;
        let mut warm = false;
        let mut submitted_at = vec![device.now(); self.users as usize];
        let mut window = device.now();
        let mut completions = Vec::new();
        let mut meter = Meter::default();
        for user in 0..u64::from(self.users) {
            submit(&mut device, user)?;
            meter.submit(window);
        }
        let (mut stopping, mut ended) = (false, None);
        // At the end of the measured time of a real drive, outstanding requests remain. The loop waits for
        // them.
        while meter.completed() < if stopping { meter.submitted() } else { requests } {
            device.wait(None, &mut completions);
            if completions.is_empty() {
                return Err(StackError::run(
                    meter.check().map_or_else(|error| error.to_string(), |()| "the drive stalled".into()),
                ));
            }
            for completion in completions.drain(..) {
                completion.status.map_err(StackError::run)?;
                let user = completion.tag.0 as usize;
                meter.complete(completion.at, completion.at - submitted_at[user]);
                if meter.submitted() < requests && !stopping {
                    submit(&mut device, completion.tag.0)?;
                    // The next request counts from this completion: on a real drive, wall-clock time has
                    // passed since then.
                    let submitted = if self.real { completion.at } else { device.now() };
                    submitted_at[user] = submitted;
                    meter.submit(submitted);
                }
                if !warm && (meter.completed() == warm_up || self.real && device.now() > warm_up_ends) {
                    // From here on, `warm_up` is the number of requests that completed before the measured
                    // part.
                    (window, warm, warm_up) = (device.now(), true, meter.completed());
                }
            }
            if self.real && warm && !stopping && device.now() > window + WATCHED {
                (stopping, ended) = (true, Some((device.now(), meter.completed())));
            }
        }
        meter.check().map_err(StackError::run)?;
        let now = device.now();
        device.drain_events();
        // Skip the deep check: at every point of the curve it would take time in proportion to the size of
        // the drive.
        device.verify(false).map_err(StackError::run)?;
        let (end, completed) = ended.unwrap_or((now, requests));
        Ok((completed - warm_up) as f64 / (end - window).as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_is_before_the_peak_if_throughput_falls_after_it() {
        // In this test, throughput rises to 1,000 with ten users, then falls to 500.
        let reached =
            |users: u32| f64::from(users.min(10) * 100) - f64::from(users.saturating_sub(10).min(5) * 100);
        let curve: Vec<(u32, f64)> = [1, 4, 10, 16, 256].map(|users| (users, reached(users))).into();
        let at = |users| Ok::<_, StackError>(reached(users));
        assert_eq!(least(&curve, 950.0, at).unwrap(), 10);
        assert_eq!(least(&curve, 700.0, at).unwrap(), 7);
        assert_eq!(least(&curve, 100.0, at).unwrap(), 1, "the first point reaches it");
    }
}
