//! Tests the claim of fio's `sprandom`: one pass over the flash brings a drive to the steady state of uniform
//! random writes. Prints the pages that each way programs, and the write amplification (WAF) of the drive writes
//! after it, as the distance from the steady WAF in %. `docs/validation/sprandom.md` explains the table.
//!
//! `cargo run --release -p fulgurite-ftl --example sprandom`
//!
//! With arguments it prepares the drive by the writes that fio itself has made: `-- 7 FILE` takes the file of fio's
//! `write_iolog`, for 7 % of spare space. The first line of the output says how large the file of fio must be.

use fulgurite_base::option::name_of;
use fulgurite_base::{Prng, StreamId};
use fulgurite_ftl::precondition::{Precondition, precondition};
use fulgurite_ftl::sprandom::SpRandom;
use fulgurite_ftl::victim::VictimConfig;
use fulgurite_ftl::{Collect, CountingSink, Ftl, FtlConfig, Stripe, analytic};
use std::collections::VecDeque;
use std::error::Error;

const PHYSICAL_PAGES: u32 = 262_144;

/// The ends of the measured windows, in drive writes.
const ENDS: [f64; 5] = [0.01, 0.1, 1.0, 2.0, 3.0];

const HEADER: &str = "  prepared by      programs    0-1 %  1-10 %  0-100 %  100-200 %  200-300 %";

/// The drive writes over which the steady WAF is measured.
const STEADY_WRITES: u32 = 4;

/// The ways to prepare a drive.
#[derive(Clone)]
enum Way {
    /// SPRandom, with the spare space misjudged by so many percentage points.
    SpRandom(i32),
    /// SPRandom on a drive that is full, and was in the steady state.
    SpRandomOnUsed,
    Precondition(Precondition),
    /// These pages are written, in this order.
    Writes(Vec<u32>),
}

/// A drive that counts programs, and the random writes that follow.
struct Drive {
    ftl: Ftl,
    sink: CountingSink,
    prng: Prng,
}

fn main() -> Result<(), Box<dyn Error>> {
    if let [percent, path] = &std::env::args().skip(1).collect::<Vec<_>>()[..] {
        let writes = [Way::Writes(iolog(&std::fs::read_to_string(path)?)?)];
        for victim in [VictimConfig::FIFO, VictimConfig::GREEDY] {
            compare(percent.parse()?, &victim, 128, 1, Stripe::RoundRobin, &writes)?;
        }
        return Ok(());
    }
    let one_unit = &[
        Way::SpRandom(0),
        Way::SpRandom(-2),
        Way::SpRandom(2),
        Way::SpRandomOnUsed,
        Way::Precondition(Precondition::Fill),
        Way::Precondition(Precondition::Steady),
    ][..];
    for percent in [7, 15, 28] {
        println!("\nspare {percent} %, predicted without noise");
        println!("{HEADER}");
        for points in [0, -2, 2] {
            print(&Way::SpRandom(points), predict(f64::from(percent) / 100.0, f64::from(points) / 100.0));
        }
        for victim in [VictimConfig::FIFO, VictimConfig::GREEDY] {
            compare(percent, &victim, 128, 1, Stripe::RoundRobin, one_unit)?;
            compare(percent, &victim, 1_024, 1, Stripe::RoundRobin, &one_unit[..1])?;
            for stripe in [Stripe::RoundRobin, Stripe::Address] {
                compare(percent, &victim, 128, 8, stripe, &one_unit[..1])?;
            }
        }
    }
    Ok(())
}

/// Returns the pages of the writes in a log of fio, which has lines like `TIME FILE write OFFSET BYTES`.
fn iolog(text: &str) -> Result<Vec<u32>, Box<dyn Error>> {
    let mut pages = Vec::new();
    for line in text.lines() {
        if let [_, _, "write", offset, "4096"] = line.split_whitespace().collect::<Vec<_>>()[..] {
            pages.push((offset.parse::<u64>()? / 4_096).try_into()?);
        }
    }
    Ok(pages)
}

/// Prints a line for each of `ways`.
fn compare(
    percent: u32,
    victim: &VictimConfig,
    segment_pages: u32,
    units: u32,
    stripe: Stripe,
    ways: &[Way],
) -> Result<(), Box<dyn Error>> {
    let segments = PHYSICAL_PAGES / segment_pages;
    let collect = Collect { victim: victim.clone(), ..Collect::PLAIN };
    let effective = (segments - units * collect.reserve) * segment_pages;
    let logical = (f64::from(effective) / (1.0 + f64::from(percent) / 100.0)).round() as u32;
    let config = FtlConfig { collect, units, stripe, ..FtlConfig::plain(logical, segments, segment_pages) };
    let closed_form = match *victim == VictimConfig::FIFO {
        true => analytic::waf_fifo(config.spare_effective()),
        false => analytic::waf_greedy(config.spare_effective(), segment_pages).ok_or("no closed form")?,
    };
    let mut drive = Drive::new(&config, &Way::Precondition(Precondition::Steady))?;
    let steady = drive.overwrite(STEADY_WRITES * logical);
    println!(
        "\nspare {percent} %, {victim}, {logical} logical pages, segments of {segment_pages} pages, units {units} {}: \
         steady WAF {steady:.3}, closed form {closed_form:.3}",
        name_of(stripe)
    );
    println!("{HEADER}");
    for way in ways {
        let mut drive = Drive::new(&config, way)?;
        let programs = drive.sink.programs as f64 / f64::from(logical);
        let ends = ENDS.map(|end| (f64::from(logical) * end) as u32);
        let mut overwritten = 0;
        let wafs = ends.map(|end| drive.overwrite(end - std::mem::replace(&mut overwritten, end)));
        print(way, (programs, wafs.map(|waf| waf / steady)));
    }
    Ok(())
}

/// Prints the programs of a way in drive writes, and the distances of the WAF in the windows from the steady one.
fn print(way: &Way, (programs, wafs): (f64, [f64; 5])) {
    let starts = [0.0, ENDS[0], ENDS[1]];
    let whole: f64 = starts.iter().zip(ENDS).zip(wafs).map(|((start, end), waf)| (end - start) * waf).sum();
    let [first, rest, _, second, third] = wafs.map(|waf| (waf - 1.0) * 100.0);
    println!(
        "  {:<14} {programs:>8.2} U  {first:>+7.1} {rest:>+7.1}  {:>+7.2}  {second:>+9.2}  {third:>+9.2}",
        way.name(),
        (whole - 1.0) * 100.0
    );
}

/// Predicts what SPRandom programs, and the relative WAF in the windows after it, if `error` is added to the spare
/// space. The log consists of many small parts with a valid share, the oldest is collected first, and a host write
/// invalidates the same share of all parts. So there is no noise. Without noise greedy victims are the oldest too.
fn predict(spare: f64, error: f64) -> (f64, [f64; 5]) {
    const PARTS: usize = 4_000;
    let (part, judged) = ((1.0 + spare) / PARTS as f64, 1.0 + spare + error);
    let oldest = 1.0 - 1.0 / (0.5 / (spare + error) + 0.7);
    let mut log = VecDeque::new();
    let (mut programs, mut place) = (0.0, 0.0);
    // Returns the copies that make room for the next part.
    let collect =
        |log: &mut VecDeque<f64>| if log.len() == PARTS { log.pop_front().unwrap_or(0.0) } else { 0.0 };
    while place < judged {
        let copies = collect(&mut log);
        let host = part - copies;
        log.push_back(copies + host * oldest.powf(1.0 - place / judged));
        place += host;
        programs += part;
    }
    // All logical pages are valid, but the WAF that fio assumes is not exact.
    let valid: f64 = log.iter().sum();
    log.iter_mut().for_each(|part| *part /= valid);
    let (mut host, mut programmed) = (0.0, 0.0);
    let wafs = ENDS.map(|end| {
        let (host_before, before) = (host, programmed);
        while host < end {
            let copies = collect(&mut log);
            let written = part - copies;
            let stay = (-written).exp();
            log.iter_mut().for_each(|part| *part *= stay);
            log.push_back(copies * stay + (1.0 - stay));
            host += written;
            programmed += part;
        }
        (programmed - before) / (host - host_before) / analytic::waf_fifo(spare)
    });
    (programs, wafs)
}

impl Drive {
    /// Returns a drive that is prepared by `way`. The counted programs are those of `way`.
    fn new(config: &FtlConfig, way: &Way) -> Result<Drive, Box<dyn Error>> {
        let mut drive = Drive {
            ftl: Ftl::new(config.clone())?,
            sink: CountingSink::default(),
            prng: Prng::new(42, "next"),
        };
        match way {
            Way::Precondition(goal) => drive.precondition(*goal),
            Way::SpRandom(points) => drive.sprandom(f64::from(*points) / 100.0),
            Way::SpRandomOnUsed => {
                drive.precondition(Precondition::Steady);
                drive.sink = CountingSink::default();
                drive.sprandom(0.0);
            }
            Way::Writes(pages) => {
                pages.iter().for_each(|lpn| drive.ftl.write(*lpn, 1, StreamId(0), &mut drive.sink))
            }
        }
        Ok(drive)
    }

    fn precondition(&mut self, goal: Precondition) {
        let Drive { ftl, sink, .. } = self;
        precondition(ftl, goal, 1, 42, |ftl, lpn, pages| ftl.write(lpn, pages, StreamId(0), sink));
    }

    /// Writes as fio does, which takes the spare space for `error` larger than it is.
    fn sprandom(&mut self, error: f64) {
        let spare = self.ftl.config().spare_effective() + error;
        for lpn in SpRandom::new(self.ftl.config().logical_pages, spare, 0.5 / spare + 0.7, 42) {
            self.ftl.write(lpn, 1, StreamId(0), &mut self.sink);
        }
    }

    /// Overwrites `writes` random pages, and returns their WAF.
    fn overwrite(&mut self, writes: u32) -> f64 {
        let before = self.sink.programs;
        let logical = u64::from(self.ftl.config().logical_pages);
        (0..writes)
            .for_each(|_| self.ftl.write(self.prng.below(logical) as u32, 1, StreamId(0), &mut self.sink));
        (self.sink.programs - before) as f64 / f64::from(writes)
    }
}

impl Way {
    fn name(&self) -> String {
        match self {
            Way::SpRandom(0) => "sprandom".to_owned(),
            Way::SpRandom(points) => format!("sprandom {points:+}"),
            Way::SpRandomOnUsed => "sprandom, used".to_owned(),
            Way::Precondition(goal) => name_of(*goal).to_owned(),
            Way::Writes(_) => "fio".to_owned(),
        }
    }
}
