//! Fits a simulated drive, called a *twin*, to the measured latencies of a real one.
//!
//! The search changes one parameter at a time, by a step up or down, keeps a change that lowers the error, and
//! halves the step of a parameter that no change improves. The error is the weighted mean of |ln(twin /
//! measured)| over the figures of the fitted rates, with 5 µs added to both times, since a difference of less
//! matters to nobody. It simulates the suite `latency` of `profile`. Rates that are held out are never looked
//! at by the search; the table tells the errors there.

mod measured;
mod fio;

use crate::table::Table;
use fulgurite_base::{Declared, Nanos, Spec, units};
use fulgurite_files::output::{self, Named, OutputFile, Replaces};
use fulgurite_ssd::preset::{Bounds, Preset};
use fulgurite_ssd::{SsdConfig, preset};
use fulgurite_stack::device::{DeviceConfig, DriveConfig, named_file};
use fulgurite_stack::settings::{self, Workloads};
use fulgurite_stack::{
    Column, Command, LatencySuite, Load, PROBE_WRITES_S, Progress, Row, Run, Stack, StackError, Suite,
    forget_drives,
};
use measured::{ALL, FIGURES, Point};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// The measurements to fit, as given by the user.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The path of the table of measurements, or a real drive to measure, as `file:PATH`.
    pub source: &'a Path,
    /// Whether a file or block device that Fulgurite did not create may be overwritten by measurements.
    pub destroy_contents: bool,
    /// A part of the drive's name in that table; `None` if the table has one drive.
    pub drive: Option<&'a str>,
    /// The file for the twin.
    pub out: &'a Path,
    /// Whether an existing file may be replaced.
    pub force: bool,
    /// The drive that the search starts from.
    pub start: &'a str,
    /// The parameters that the search may change, separated by commas; `None` for the usual ones.
    pub free: Option<&'a str>,
    /// The rates that the search never looks at, separated by commas; `None` for every third one.
    pub check: Option<&'a str>,
    /// The measured bytes per second of sequential writes; `None` if they were not measured.
    pub sequential: Option<&'a str>,
    /// The most drives that the search simulates.
    pub evaluations: &'a str,
    /// The seed of all randomness.
    pub seed: Option<&'a str>,
}

/// A twin that was fitted.
pub struct Calibrated {
    /// The twin as a device.
    pub device: String,
    /// The errors, one row for each figure of each rate.
    pub table: Table,
    /// The summary of the fit, in one sentence.
    pub sentence: String,
}

/// The measured virtual time of a rate during the search, and for the table of errors.
const SEARCHED: Nanos = Nanos(2_000_000_000);
const REPORTED: Nanos = Nanos(4_000_000_000);

/// The time that is added to both times of a figure before they are compared, in nanoseconds.
const FLOOR_NS: f64 = 5_000.0;

/// The largest error of one figure, as a natural logarithm, so that one bad figure does not decide the fit.
const WORST: f64 = 1.5;

/// The weight of the rate of sequential writes.
const SEQUENTIAL_WEIGHT: f64 = 6.0;

/// The first step of a parameter, as a share of its value, and the step at which the search leaves it alone.
const FIRST_STEP: f64 = 0.15;
const LAST_STEP: f64 = 0.02;

/// Fits a twin and writes it to a file.
pub fn calibrate(asked: Asked<'_>, progress: &Progress) -> Result<Calibrated, StackError> {
    let out = Named::new("--out", asked.out).replacing(Replaces::Beginning(HEAD).or_forced(asked.force));
    let points = match asked.source.to_str().filter(|source| source.starts_with(REAL)) {
        Some(device) => {
            output::check(&[Named::new("SOURCE", named_file(device))], &[out])?;
            measure(device, asked.destroy_contents, asked.seed, progress)?
        }
        None => {
            output::check(&[Named::new("SOURCE", asked.source)], &[out])?;
            match (asked.source.is_dir(), asked.drive) {
                (true, None) => fio::read(asked.source)?,
                (true, Some(drive)) => {
                    return Err(StackError::request(format!(
                        "--drive {drive} is for a table of several drives, and a folder has fio's files of one; \
                         accepted: leave it out"
                    )));
                }
                (false, drive) => measured::read(asked.source, drive)?,
            }
        }
    };
    let (fitted, predicted) = divided(points, asked.check)?;
    let count = |text: &str, flag: &str| {
        units::parse_count(text).map_err(|error| StackError::request(format!("{flag}: {error}")))
    };
    let evaluations = count(asked.evaluations, "--evaluations")?;
    let seed = asked.seed.map_or(Ok(42), |text| count(text, "--seed"))?;
    let sequential = asked.sequential.map(units::parse_size).transpose();
    let sequential = sequential.map_err(|error| StackError::request(format!("--sequential: {error}")))?;
    let start = Twin::start(asked.start)?;
    let free = start.free(asked.free)?;
    progress.expect(evaluations);
    let mut search = Search { fitted: &fitted, sequential, seed, left: evaluations, progress };
    let (twin, _) = search.run(start, &free)?;
    let mut rows = Vec::new();
    for (points, part) in [(&fitted, "fitted"), (&predicted, "predicted")] {
        for (point, simulated) in points.iter().zip(twin.simulate(points, REPORTED, seed)?) {
            rows.extend(error_rows(point, &simulated, part));
        }
    }
    let twin = twin.text();
    let mean = |part: &str| {
        let errors = rows.iter().filter(|row| row.text(Column::Part) == part);
        let errors: Vec<f64> = errors.filter_map(|row| row.number(Column::Deviation)).map(f64::abs).collect();
        (errors.len(), errors.iter().sum::<f64>() / errors.len().max(1) as f64)
    };
    let ((figures, of_fit), (others, of_check)) = (mean("fitted"), mean("predicted"));
    let told = match others {
        0 => "no rate was held out".to_owned(),
        _ => format!("{others} figures of other rates within {:.1} %", 100.0 * of_check),
    };
    let sentence = format!(
        "{figures} fitted figures are within {:.1} % in the mean, {told}; use it as --device {}",
        100.0 * of_fit,
        asked.out.display()
    );
    write(out, &asked, &twin, &sentence, bounds(&rows))?;
    Ok(Calibrated { device: twin, table: Table { rows }, sentence })
}

/// The beginning of the name of a real drive.
const REAL: &str = "file:";

/// Measures a real drive with the suite `latency` of `profile`.
fn measure(
    device: &str,
    destroy_contents: bool,
    seed: Option<&str>,
    progress: &Progress,
) -> Result<Vec<Point>, StackError> {
    let destroy = if destroy_contents { "yes" } else { "no" };
    let mut values =
        BTreeMap::from([("device", device), ("suite", "latency"), ("destroy_contents", destroy)]);
    values.extend(seed.map(|seed| ("seed", seed)));
    let run = settings::run(Command::Profile, &values, &mut Workloads::default())?;
    run.check()?;
    Ok(run.execute(progress)?.iter().map(measured::point).collect())
}

/// The beginning of a file with a twin.
const HEAD: &str = "# A drive that fulgurite calibrate has fitted.";

fn write(
    out: Named<'_>,
    asked: &Asked<'_>,
    device: &str,
    sentence: &str,
    bounds: Option<Bounds>,
) -> Result<(), StackError> {
    let mut file = OutputFile::create(out)?;
    let mut text = format!(
        "{HEAD}\n# {sentence}\nsource = {}\ndevice = {}\n",
        toml::Value::from(asked.source.display().to_string()),
        toml::Value::from(device)
    );
    if let Some(bounds) = bounds {
        text += "\n# The measured response time over the twin's, least and most, at the rates that the drive \
                 sustained.\n[bounds]\n";
        for (name, [least, most]) in Bounds::NAMES.iter().zip(bounds.values()) {
            text += &format!("{name} = [{least:.2}, {most:.2}]\n");
        }
    }
    file.write_all(text.as_bytes()).map_err(|error| file.named().failed(error))?;
    Ok(file.finish()?)
}

/// Divides points into those to fit and those that are held out.
fn divided(points: Vec<Point>, check: Option<&str>) -> Result<(Vec<Point>, Vec<Point>), StackError> {
    let Some(check) = check else {
        // Keeps the lowest and the highest rate, which bound the rest.
        let is_held = |at: usize| points.len() > 3 && at % 3 == 1 && at + 1 < points.len();
        let held = (0..points.len()).filter(|at| is_held(*at)).map(|at| points[at].clone()).collect();
        let fitted = (0..points.len()).filter(|at| !is_held(*at)).map(|at| points[at].clone()).collect();
        return Ok((fitted, held));
    };
    let rates = check.split(',').filter(|rate| *rate != "none").map(units::parse_count);
    let rates = rates.collect::<Result<Vec<u64>, _>>();
    let rates = rates.map_err(|error| StackError::request(format!("--check: {error}")))?;
    if let Some(rate) = rates.iter().find(|rate| points.iter().all(|point| point.offered_ops_s != **rate)) {
        let known: Vec<String> = points.iter().map(|point| point.offered_ops_s.to_string()).collect();
        return Err(StackError::request(format!(
            "--check {rate}: this rate was not measured; accepted: none, or some of {}",
            known.join(", ")
        )));
    }
    let (held, fitted): (Vec<Point>, Vec<Point>) =
        points.into_iter().partition(|point| rates.contains(&point.offered_ops_s));
    match fitted.len() {
        0 | 1 => {
            Err(StackError::request("--check leaves fewer than two rates to fit; accepted: fewer rates"))
        }
        _ => Ok((fitted, held)),
    }
}

/// The share of the offered load that a drive must have done for its rate to count as sustained.
const SUSTAINED: f64 = 0.97;

/// Returns how far the measured drive is from the twin at the rates that it sustained; `None` if a figure was
/// measured at none of them.
fn bounds(rows: &[Row]) -> Option<Bounds> {
    let done = rows.iter().filter(|row| row.text(Column::Figure) == Column::DoneOpsS.name());
    let sustained = done.filter_map(|row| {
        let (offered, done) = (row.number(Column::OfferedOpsS)?, row.number(Column::Measured)?);
        (done >= SUSTAINED * (offered - PROBE_WRITES_S)).then_some(offered)
    });
    let sustained: Vec<f64> = sustained.collect();
    let range = |column: Column| {
        let of_figure = rows.iter().filter(|row| row.text(Column::Figure) == column.name());
        let of_rate = of_figure
            .filter(|row| row.number(Column::OfferedOpsS).is_some_and(|rate| sustained.contains(&rate)));
        let ratio = |row: &Row| Some(row.number(Column::Measured)? / row.number(Column::Simulated)?);
        let ratios: Vec<f64> = of_rate.filter_map(ratio).filter(|ratio| ratio.is_finite()).collect();
        let [least, most] =
            [ratios.iter().copied().reduce(f64::min)?, ratios.iter().copied().reduce(f64::max)?];
        Some([least, most])
    };
    Some(Bounds::new([
        range(Column::ReadLatencyP50Ns)?,
        range(Column::ReadLatencyP99Ns)?,
        range(Column::WriteLatencyP50Ns)?,
        range(Column::WriteLatencyP99Ns)?,
    ]))
}

/// Returns the rows with the errors of a point.
fn error_rows(point: &Point, simulated: &[f64; FIGURES], part: &str) -> Vec<Row> {
    let figures = ALL.iter().zip(point.figures).zip(simulated);
    let measured = figures.filter_map(|((figure, measured), simulated)| Some((figure, measured?, simulated)));
    measured
        .map(|(figure, measured, simulated)| {
            let mut row = Row::default();
            row.set(Column::OfferedOpsS, point.offered_ops_s as f64);
            row.set(Column::Part, part);
            row.set(Column::Figure, figure.column.name());
            row.set(Column::Measured, measured);
            row.set(Column::Simulated, *simulated);
            row.set(Column::Deviation, simulated / measured - 1.0);
            row
        })
        .collect()
}

/// A simulated drive during the search.
#[derive(Clone)]
struct Twin {
    preset: &'static Preset,
    config: SsdConfig,
}

/// The parameters that the search changes unless the user names others.
const USUAL: &[&str] = &[
    "op",
    "program_us",
    "read_us",
    "read_latency_us",
    "write_latency_us",
    "queue_depth",
    "read_spread",
    "program_spread",
    "suspend_points",
    "resume_us",
];

impl Twin {
    fn start(text: &str) -> Result<Twin, StackError> {
        match DeviceConfig::parse(text)?.drive {
            DriveConfig::Simulated { preset, config } if !config.in_place => {
                Ok(Twin { preset: preset::by_name(preset)?, config: *config })
            }
            _ => Err(StackError::request(format!(
                "--start {text} is no simulated flash drive; accepted: a preset like pe8110, with options"
            ))),
        }
    }

    /// Returns the twin as a device.
    fn text(&self) -> String {
        self.preset.canonical(&self.config)
    }

    /// Returns the parameters that the search may change.
    fn free(&self, asked: Option<&str>) -> Result<Vec<&'static str>, StackError> {
        let known = |key: &str| SsdConfig::OPTIONS.iter().find(|option| option.key == key);
        let Some(asked) = asked else {
            return Ok(USUAL.iter().copied().filter(|key| self.scaled(key, 1.1).is_some()).collect());
        };
        let keys = asked.split(',').map(|key| match known(key) {
            Some(option) if self.scaled(key, 2.0).is_some() => Ok(option.key),
            Some(_) => Err(StackError::request(format!(
                "--free {key}: {} has no number above zero for it that could be scaled; accepted: leave it out, or \
                 another --start",
                self.text()
            ))),
            None => Err(StackError::request(format!(
                "--free {key} is no parameter of a drive; accepted: numbers that list devices names"
            ))),
        });
        keys.collect()
    }

    /// Returns the twin with a parameter scaled; `None` if the parameter is not a number above zero, or the
    /// drive would be impossible.
    fn scaled(&self, key: &str, by: f64) -> Option<Twin> {
        let option = SsdConfig::OPTIONS.iter().find(|option| option.key == key)?;
        let text = (option.show)(&self.config);
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = (text[..digits].parse::<f64>().ok()?, &text[digits..]);
        let is_whole = option.written == "N";
        let changed = match is_whole {
            // A whole number moves by at least one.
            true if by > 1.0 => (number * by).round().max(number + 1.0),
            true => (number * by).round().min(number - 1.0),
            false => (number * by * 1_000.0).round() / 1_000.0,
        };
        if number <= 0.0 || changed <= 0.0 || !matches!(unit, "" | "%") {
            return None;
        }
        let spec = Spec::parse(&format!("{}:{key}={changed}{unit}", self.preset.name)).ok()?;
        let config = self.config.clone().changed_by(spec).ok()?;
        Some(Twin { preset: self.preset, config })
    }

    /// Returns the figures of the twin at the rates of `points`.
    fn simulate(&self, points: &[Point], time: Nanos, seed: u64) -> Result<Vec<[f64; FIGURES]>, StackError> {
        let simulated = points.iter().map(|point| {
            let drive =
                DriveConfig::Simulated { preset: self.preset.name, config: Box::new(self.config.clone()) };
            let device = DeviceConfig { label: self.text(), drive };
            let suite = Suite::Latency(LatencySuite { rate: Some(point.offered_ops_s), time });
            let run = Run {
                stack: Stack { engine: None, pool: None, layer: None, device },
                load: Load::Characterisation { page_bytes: self.config.page_bytes, suite },
                measure: Default::default(),
                seed,
            };
            let rows = run.execute(&Progress::default())?;
            let number = |column| rows.first().and_then(|row| row.number(column));
            Ok(ALL.each_ref().map(|figure| number(figure.column).unwrap_or(0.0)))
        });
        let simulated = simulated.collect();
        // Every drive of a search is simulated once, so its preconditioned state is not worth the memory.
        forget_drives();
        simulated
    }
}

/// The search for the twin with the least error.
struct Search<'a> {
    fitted: &'a [Point],
    sequential: Option<u64>,
    seed: u64,
    /// The number of drives that may still be simulated.
    left: u64,
    progress: &'a Progress,
}

impl Search<'_> {
    fn run(&mut self, start: Twin, free: &[&'static str]) -> Result<(Twin, f64), StackError> {
        let mut best = self.error(&start)?;
        let mut twin = start;
        let mut steps: Vec<(&str, f64)> = free.iter().map(|key| (*key, FIRST_STEP)).collect();
        while steps.iter().any(|(_, step)| *step >= LAST_STEP) && self.left > 0 {
            for (key, step) in steps.iter_mut().filter(|(_, step)| *step >= LAST_STEP) {
                let mut moved = false;
                for by in [1.0 + *step, 1.0 / (1.0 + *step)] {
                    // Goes on in a direction as long as it helps.
                    while let Some(next) = twin.scaled(key, by).filter(|_| self.left > 0) {
                        let error = self.error(&next)?;
                        if error >= best {
                            break;
                        }
                        (best, twin, moved) = (error, next, true);
                    }
                    if moved {
                        break;
                    }
                }
                if !moved {
                    *step /= 2.0;
                }
            }
        }
        Ok((twin, best))
    }

    /// Returns the weighted mean error of a twin at the fitted rates.
    fn error(&mut self, twin: &Twin) -> Result<f64, StackError> {
        self.left = self.left.saturating_sub(1);
        let simulated = twin.simulate(self.fitted, SEARCHED, self.seed)?;
        self.progress.add(1);
        let (mut sum, mut weights) = (0.0, 0.0);
        let mut add = |simulated: f64, measured: f64, floor: f64, weight: f64| {
            let error = libm::log((simulated + floor) / (measured + floor)).abs();
            sum += weight * error.min(WORST);
            weights += weight;
        };
        for (point, simulated) in self.fitted.iter().zip(&simulated) {
            for ((figure, measured), simulated) in ALL.iter().zip(point.figures).zip(simulated) {
                let floor = if figure.column == Column::DoneOpsS { 0.0 } else { FLOOR_NS };
                if let Some(measured) = measured {
                    add(*simulated, measured, floor, figure.weight);
                }
            }
        }
        if let Some(measured) = self.sequential {
            add(twin.config.sequential_bytes_s(), measured as f64, 0.0, SEQUENTIAL_WEIGHT);
        }
        Ok(sum / weights)
    }
}
