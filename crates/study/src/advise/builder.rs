//! Builds a [`Question`] from the user's request: the drive, the memory, the settings to try, and the parts
//! of the workload. Settings whose values cannot be compared are left out, and a remark in the answer says
//! why.

use super::axis::{Axis, Goal, Setup, TRIED};
use super::evidence::Evidence;
use super::question::{Asked, Question, flag, run, settings};
use crate::grid;
use fulgurite_base::units::{self, Share};
use fulgurite_stack::device::{DeviceConfig, DriveConfig};
use fulgurite_stack::settings::Workloads;
use fulgurite_stack::workload::{View, Workload};
use fulgurite_stack::{Run, StackError};
use fulgurite_workload::Op;

/// The default size of the pool's memory, as a share of the data. The command `pool` has the same default.
const USUAL_MEMORY: &str = "6%";

/// The default page size in bytes. For a drive with larger pages the drive's page size is the default.
const USUAL_PAGE: u32 = 4096;

/// The page sizes in bytes to try besides the plain one.
const PAGES: [u32; 2] = [8192, 16_384];

/// The default number of requests in each run of a generated workload: the larger of a fixed number and a
/// multiple of the pool's frames. The first pair is for a simulated drive, the second for a real one.
const OPS: [(u64, u64); 2] = [(200_000, 10), (50_000, 8)];

/// The defaults for the largest number of page requests in a slice of a trace, on a simulated drive and on a
/// real one.
const SLICE_AT_MOST: [u64; 2] = [500_000, 50_000];

/// The assumed batch size of the drive until the drive has been measured.
const USUAL_N_W: u32 = 8;

impl Question {
    /// Parses the user's request. Nothing is run or measured.
    pub fn new(asked: Asked) -> Result<Question, StackError> {
        let goal = asked.goal.map_or(Ok(Goal::Throughput), Goal::parse)?;
        let seed = asked.seed.map_or(Ok(42), grid::seed)?;
        let (mut situation, mut given) = (Setup::new(), Vec::new());
        for (name, text) in asked.typed {
            let values = grid::values(&text)?;
            if settings().all(|(setting, _)| setting.name != name) {
                return Err(StackError::request(format!(
                    "--{name} is for comparing drives, and a pool has no arrival times; accepted: with --require, or \
                     leave it out"
                )));
            }
            match (TRIED.contains(&name), values.len()) {
                (_, 0) => {
                    return Err(StackError::request(format!(
                        "{}: no value; give one, or leave it out",
                        flag(name)
                    )));
                }
                (true, _) => given.push((name, values)),
                (false, 1) => drop(situation.insert(name, text)),
                (false, _) => {
                    let or = if name == "device" { ", or --require to compare drives" } else { "" };
                    return Err(StackError::request(format!(
                        "{} {text}: advice is for one situation; accepted: one value{or}",
                        flag(name)
                    )));
                }
            }
        }
        let value = |name| situation.get(name).map_or(&[][..], std::slice::from_ref);
        grid::check_format(value("format"), value("workload"))?;
        Builder { situation, given, goal, seed, remarks: Vec::new(), workloads: Workloads::dry() }
            .build(asked.memory)
    }
}

/// The intermediate state while a question is built.
pub(super) struct Builder {
    /// The settings that all runs have in common.
    pub situation: Setup,
    /// The user's values for the settings in [`TRIED`], by the name of the setting.
    pub given: Vec<(&'static str, Vec<String>)>,
    /// The objective of the advice.
    pub goal: Goal,
    /// The seed of the first part of the workload.
    pub seed: u64,
    /// Sentences for the reader of the answer, which say which settings are left out and why.
    pub remarks: Vec<String>,
    /// The workloads that have been read, so that a trace is read only once.
    pub workloads: Workloads,
}

impl Builder {
    /// Builds the question for a pool with this memory: a size, a share of the data, or `None` for the
    /// default.
    pub(super) fn build(mut self, memory: Option<&str>) -> Result<Question, StackError> {
        let device = self.device()?;
        let is_real = device.is_real();
        let (page_bytes, page) = self.page(&device)?;
        let mut base = self.situation.clone();
        base.extend([("page", page.clone()), ("seed", self.seed.to_string())]);
        base.remove("ops");
        let memory = memory.unwrap_or(USUAL_MEMORY);
        let (frames, pages) = self.frames(memory, page_bytes, &base)?;
        base.insert("frames", frames.to_string());
        let memory_bytes = frames * u64::from(page_bytes);
        let plain = run(&base, &mut self.workloads)?;
        let workload = plain.requested().map(|requested| requested.workload.clone());
        let workload = workload.ok_or_else(|| StackError::run("a pool without a workload"))?;
        let mut sizes = vec![page_bytes];
        let mut axes = self.policies(&workload, &plain, pages)?;
        axes.extend(self.pages(&workload, &device, &mut sizes, memory_bytes)?);
        let evidence = self.evidence(&workload, &sizes, frames, is_real)?;
        if page_bytes != USUAL_PAGE {
            self.situation.insert("page", page);
        }
        self.situation.remove("ops");
        let mut question = Question {
            situation: self.situation,
            axes,
            goal: self.goal,
            evidence,
            remarks: self.remarks,
            memory_bytes,
            page_bytes,
            is_real,
            plain,
            workloads: self.workloads,
        };
        // Repeats the first run of the search with the values of the first part. An invalid request is so
        // reported before anything is executed.
        if let Some((values, _)) = question.values(&Setup::new(), 0) {
            question.plain = run(&values, &mut question.workloads)?;
        }
        question.check_given()?;
        Ok(question)
    }

    fn device(&self) -> Result<DeviceConfig, StackError> {
        let device = DeviceConfig::parse(self.situation.get("device").map_or("p4510", String::as_str))?;
        if matches!(device.drive, DriveConfig::None | DriveConfig::Mem(_)) {
            return Err(StackError::request(format!(
                "device {}: advice compares times, and requests to this device take no time; accepted: a \
                 preset or file:PATH; for hit ratios alone: fulgurite pool WORKLOAD --device none \
                 --replacement lru,arc",
                device.label
            )));
        }
        Ok(device)
    }

    /// Returns the plain page size, in bytes and as text.
    fn page(&self, device: &DeviceConfig) -> Result<(u32, String), StackError> {
        let given =
            self.given.iter().find(|(name, _)| *name == "page").and_then(|(_, values)| values.first());
        let usual = USUAL_PAGE.max(device.page_bytes());
        let text = given.cloned().unwrap_or_else(|| units::format_size(u64::from(usual)));
        let bytes =
            units::parse_size(&text).map_err(|error| StackError::request(format!("--page: {error}")))?;
        Ok((u32::try_from(bytes).unwrap_or(u32::MAX), text))
    }

    /// Returns the number of frames that fit into the memory, and the number of pages of the workload.
    fn frames(&mut self, memory: &str, page_bytes: u32, base: &Setup) -> Result<(u64, u64), StackError> {
        let refused = |why: String| StackError::request(format!("--memory {memory}: {why}"));
        let is_share = memory.ends_with('%');
        if is_share && units::parse_share(memory).is_ok_and(|share| share > Share::ONE) {
            return Err(refused("more than all of the data; accepted: up to 100%, or a size".to_owned()));
        }
        let bytes = match is_share {
            true if units::parse_share(memory) == Ok(Share::ZERO) => {
                return Err(refused("no memory at all; accepted: a share like 6%, or a size".to_owned()));
            }
            true => units::parse_share(memory).map(|_| 0),
            false => units::parse_size(memory),
        };
        let bytes =
            bytes.map_err(|error| refused(format!("{error}; or give a share of the data, like 6%")))?;
        let mut base = base.clone();
        base.insert("frames", if is_share { memory } else { "100%" }.to_owned());
        let run = run(&base, &mut self.workloads)?;
        let pages = run.requested().map_or(0, |requested| requested.pages);
        let frames = match is_share {
            true => run.stack.pool.as_ref().map_or(0, |pool| u64::from(pool.frames)),
            false => bytes / u64::from(page_bytes),
        };
        let size = |pages: u64| units::format_size(pages.saturating_mul(u64::from(page_bytes)));
        match frames {
            0 => Err(refused(format!("less than a page; accepted: {} to {}", size(1), size(pages)))),
            frames if frames > pages => Err(refused(format!(
                "more than the {} that the workload touches, so no page would ever be evicted; accepted: {} to {}",
                size(pages),
                size(1),
                size(pages)
            ))),
            frames => Ok((frames, pages)),
        }
    }

    /// Creates the axes of the policies to try.
    fn policies(&mut self, workload: &Workload, plain: &Run, pages: u64) -> Result<Vec<Axis>, StackError> {
        let mut axes = Vec::new();
        let writes = writes(workload, pages, self.seed)?;
        for name in TRIED.into_iter().filter(|name| *name != "page") {
            let given = self.given.iter().find(|(known, _)| *known == name).map(|(_, values)| values.clone());
            let moves_pages = ["placement", "victim"].contains(&name);
            match given {
                Some(values) => axes.push(Axis::given(name, values)),
                None if moves_pages && plain.stack.layer.is_none() => {}
                None if (moves_pages || name == "write_back") && !writes => {
                    let flag = flag(name);
                    self.remarks.push(format!("{flag} is left as it is: the workload writes nothing."));
                }
                None if name == "write_back" => axes.push(Axis::write_back(USUAL_N_W)),
                None if moves_pages => {
                    axes.push(Axis { usual: "the layer's".to_owned(), ..Axis::of_kind(name) })
                }
                None => axes.push(Axis::of_kind(name)),
            }
        }
        if plain.stack.layer.is_none() && !axes.iter().any(|axis| axis.name == "placement") {
            self.remarks.push(
                "The drive's own placement and victim policies are not changed; --layer log tries policies on the host."
                    .to_owned(),
            );
        }
        Ok(axes)
    }

    /// Creates the axis of the page sizes, and appends these to `sizes`. Returns `None` if page sizes cannot
    /// be compared for this workload.
    fn pages(
        &mut self,
        workload: &Workload,
        device: &DeviceConfig,
        sizes: &mut Vec<u32>,
        memory_bytes: u64,
    ) -> Result<Option<Axis>, StackError> {
        let given = self.given.iter().find(|(name, _)| *name == "page").map(|(_, values)| values.clone());
        let given = given.filter(|values| values.len() > 1);
        let why = self.why_one_page_size(workload)?;
        if why.is_none() {
            self.remarks.push(
                "A request for several pages goes through the pool page by page, so larger pages gain where \
                 requests are large."
                    .to_owned(),
            );
        }
        match (given, why) {
            (Some(values), Some(why)) => Err(StackError::request(format!(
                "--page {}: {why}; accepted: one page size",
                values.join(",")
            ))),
            (None, Some(why)) => {
                self.remarks.push(format!("--page is left as it is: {why}."));
                Ok(None)
            }
            (Some(values), None) => {
                for text in &values[1..] {
                    let bytes = units::parse_size(text)
                        .map_err(|error| StackError::request(format!("--page: {error}")))?;
                    sizes.push(u32::try_from(bytes).unwrap_or(u32::MAX));
                }
                Ok(Some(Axis::given("page", values)))
            }
            (None, None) => {
                let suits = |size: &u32| {
                    *size > sizes[0]
                        && size.is_multiple_of(device.page_bytes())
                        && memory_bytes / u64::from(*size) >= 8
                };
                let larger: Vec<u32> = PAGES.into_iter().filter(suits).collect();
                let others = larger.iter().map(|size| units::format_size(u64::from(*size))).collect();
                sizes.extend(larger);
                Ok(Some(Axis {
                    usual: units::format_size(u64::from(sizes[0])),
                    others,
                    ..Axis::nothing("page")
                }))
            }
        }
    }

    /// Returns the reason why page sizes cannot be compared for this workload, or `None` if they can.
    fn why_one_page_size(&self, workload: &Workload) -> Result<Option<&'static str>, StackError> {
        Ok(match workload.trace() {
            None => Some(
                "a generated workload asks for whole pages, so larger pages would be more data, not the \
                 same data in larger pages",
            ),
            Some(trace) if !trace.counts_bytes()? => {
                Some("the trace counts in pages and does not tell their size")
            }
            Some(_) if self.goal == Goal::P99 => Some(
                "a request to a larger page is another request, so their response times cannot be compared",
            ),
            Some(_) => None,
        })
    }

    fn evidence(
        &mut self,
        workload: &Workload,
        sizes: &[u32],
        frames: u64,
        is_real: bool,
    ) -> Result<Evidence, StackError> {
        let ops = self.situation.get("ops").map(|text| {
            let ops = units::parse_count(text).ok().filter(|ops| *ops > 0);
            ops.ok_or_else(|| {
                StackError::request(format!("--ops {text}: accepted: a whole number from 1 on, like 300K"))
            })
        });
        let ops = ops.transpose()?;
        if workload.trace().is_none() {
            let (usual, fills) = OPS[usize::from(is_real)];
            let ops = ops.unwrap_or(usual.max(fills.saturating_mul(frames)));
            return Ok(Evidence::seeds(self.seed, ops, sizes[0], is_real));
        }
        let most = ops.unwrap_or(SLICE_AT_MOST[usize::from(is_real)].max(FILLS_AT_MOST * frames));
        let pages = |page_bytes: u32| {
            let bound = workload.bind(View::Pool { page_bytes, pages: 0 })?;
            let pages: Vec<u32> = bound.request_pages().map(Iterator::collect).unwrap_or_default();
            Ok(pages.into_iter())
        };
        Evidence::slices(pages, sizes, (self.seed, frames, most))
    }
}

/// The default for the largest number of page requests in a slice of a trace, per frame of the pool. It
/// applies if it gives more page requests than [`SLICE_AT_MOST`].
const FILLS_AT_MOST: u64 = 10;

/// Whether the workload writes. For a generator only the first requests are examined.
pub(crate) fn writes(workload: &Workload, pages: u64, seed: u64) -> Result<bool, StackError> {
    /// The number of requests that are examined. A generator that writes at all does so long before this many
    /// requests.
    const ENOUGH: u64 = 1_000_000;
    let bound = workload.bind(View::Pool { page_bytes: USUAL_PAGE, pages })?;
    let mut requests = bound.requests(seed)?;
    let most = if workload.trace().is_some() { u64::MAX } else { ENOUGH };
    for _ in 0..most {
        match requests.next_request() {
            Some(request) if request.op == Op::Write => return Ok(true),
            Some(_) => {}
            None => break,
        }
    }
    Ok(false)
}
