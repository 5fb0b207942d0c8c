//! Executes the commands about served drives: `serve` and `ctl`.

use crate::common::Common;
use crate::interrupt;
use crate::output::{print_upright, say, written};
use crate::progress::watched_with_remarks;
use clap::{Args, Subcommand};
use fulgurite_serve::{Asked, Handle, Started, control, serve};
use fulgurite_study::table::Table;
use fulgurite_study::{Progress, StackError, Unit};
use serde_json::{Map, Value, json};
use signal_hook::consts::SIGUSR1;
use signal_hook::iterator::Signals;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The options of `serve` that are no settings of a run.
#[derive(Args)]
pub(crate) struct Served {
    /// Serve it as a network block device here; may be given several times
    #[arg(long, value_name = "unix:PATH|tcp:HOST:PORT")]
    pub nbd: Vec<String>,
    /// Mount a folder here, whose file `drive` is the drive
    #[arg(long, value_name = "DIR")]
    pub fuse: Option<PathBuf>,
    /// Accept commands of ctl here: power cuts, faults, snapshots
    #[arg(long, value_name = "SOCKET")]
    pub control: Option<PathBuf>,
    /// Show the drive live at this address, with a browser; /metrics has Prometheus's format
    #[arg(long, value_name = "127.0.0.1:PORT")]
    pub http: Option<String>,
    /// Speed of the drive's clock: 1x is that of a real drive, max that of this machine [default: 1x]
    #[arg(long, value_name = "1x|10x|max")]
    pub speed: Option<String>,
    /// Writes that a power cut may lose: protected, volatile or lying, with options
    /// (volatile:bytes=64MiB,tear=4KiB) [default: that of the drive's cache]
    #[arg(long, value_name = "CACHE")]
    pub power: Option<String>,
    /// File that holds the drive's contents, and keeps them for the next server; a new one is sparse [default: memory]
    #[arg(long, value_name = "FILE")]
    pub contents: Option<PathBuf>,
    /// Let other machines connect
    #[arg(long)]
    pub remote: bool,
}

/// A command to a served drive.
#[derive(Subcommand)]
pub(crate) enum Control {
    /// Cut the power: lose writes that were not flushed, drop all requests in flight, and switch the drive on again
    PowerCut {
        /// Cut at a point of the run, and wait for it: write:N, flush:N (the nth from now on), write-to:OFFSET+BYTES,
        /// unflushed:N (a flush with so many unflushed pages)
        #[arg(long, value_name = "POINT")]
        at: Option<String>,
        /// Leave the drive off until power-on
        #[arg(long)]
        stay_off: bool,
    },
    /// Switch the drive on
    PowerOn,
    /// Let reads fail
    FailReads(Failing),
    /// Let writes fail, without any effect
    FailWrites(Failing),
    /// Make every request take longer by this time; 0 ends that
    Slow {
        /// The time in microseconds
        us: u64,
    },
    /// Let writes fail because the drive is full
    Fill {
        /// End that
        #[arg(long)]
        end: bool,
    },
    /// Let the next writes complete without any effect, so that later reads are stale
    LoseWrites {
        /// The number of writes
        times: u64,
    },
    /// Let the next writes go elsewhere
    MisdirectWrites {
        /// The number of writes
        times: u64,
    },
    /// Invert a bit
    Rot {
        /// The offset of the byte
        offset: u64,
        /// The number of the bit, 0 to 7
        #[arg(long, default_value_t = 0)]
        bit: u8,
    },
    /// End all faults
    Heal,
    /// Print the figures so far
    Stats,
    /// Keep the contents under a name
    Snapshot {
        /// The name
        name: String,
    },
    /// Bring the contents of a snapshot back
    Restore {
        /// The name
        name: String,
    },
    /// End the server
    Stop,
}

/// Requests that fail.
#[derive(Args)]
pub(crate) struct Failing {
    /// The offset of the first byte
    #[arg(long, default_value_t = 0)]
    offset: u64,
    /// The number of bytes [default: to the end]
    #[arg(long)]
    length: Option<u64>,
    /// The number of requests that fail [default: all]
    #[arg(long)]
    times: Option<u64>,
}

impl Failing {
    fn json(&self, name: &str) -> Value {
        let all = u64::MAX;
        let (length, times) = (self.length.unwrap_or(all), self.times.unwrap_or(all));
        json!({ "do": name, "offset": self.offset, "length": length, "times": times })
    }
}

/// Serves a drive until an interrupt, and prints its figures.
pub(crate) fn run(
    settings: Vec<(&'static str, String)>,
    served: &Served,
    common: &Common,
) -> Result<(), StackError> {
    let mut asked = Asked {
        nbd: served.nbd.iter().map(String::as_str).collect(),
        fuse: served.fuse.as_deref(),
        control: served.control.as_deref(),
        http: served.http.as_deref(),
        speed: served.speed.as_deref(),
        power: served.power.as_deref(),
        contents: served.contents.as_deref(),
        remote: served.remote,
        ..Asked::default()
    };
    asked.settings.extend(settings.iter().map(|(name, value)| (*name, value.as_str())));
    asked.settings.extend(common.seed.as_deref().map(|seed| ("seed", seed)));
    let handle = Handle::new()
        .map_err(|error| StackError::run(format!("the system gives no event descriptor: {error}")))?;
    let ending = handle.clone();
    interrupt::ask_first(move || ending.end());
    watch_for_reports(&handle);
    let mut report = |row: Result<_, StackError>| {
        let printed = row.and_then(|row| print_upright(&Table { rows: vec![row] }, common));
        if let Err(error) = printed {
            say(&format!("fulgurite: {error}"));
        }
    };
    let started = |started: &Started| {
        if !common.quiet {
            say(&greeting(started));
        }
    };
    // A bar would have no end, so only the remarks are shown.
    let work = |_: &Progress| serve(&asked, handle, started, &mut report);
    let (row, remarks) = watched_with_remarks(true, "requests", work);
    let row = row?;
    if !common.quiet {
        remarks.iter().for_each(|remark| say(remark));
    }
    print_upright(&Table { rows: vec![row] }, common)
}

/// Lets the signal USR1 ask for the figures so far.
fn watch_for_reports(handle: &Handle) {
    let handle = handle.clone();
    // Without the signal, the figures come at the end, and by `ctl stats`.
    let Ok(mut signals) = Signals::new([SIGUSR1]) else { return };
    std::thread::spawn(move || signals.forever().for_each(|_| handle.report()));
}

fn greeting(started: &Started) -> String {
    format!(
        "serving {} ({}, {} cache) at {}{}; Ctrl-C ends it",
        started.device,
        Unit::Bytes.humane(started.bytes as f64),
        started.cache,
        started.places.join(" and "),
        started.page.as_ref().map_or_else(String::new, |page| format!("; it is shown at {page}"))
    )
}

/// Sends a command to a served drive.
pub(crate) fn ctl(socket: &Path, command: &Control, common: &Common) -> Result<(), StackError> {
    let seed = common.seed.as_deref();
    let seed = seed.map(str::parse::<u64>).transpose();
    let seed = seed.map_err(|_| StackError::request("--seed is no number; accepted: 0 to 2^64 - 1"))?;
    let line = match command {
        Control::PowerCut { at, stay_off } => {
            let at = at.as_deref().map(point).transpose()?;
            json!({ "do": "power-cut", "seed": seed, "at": at, "stay_off": stay_off })
        }
        Control::PowerOn => json!({ "do": "power-on" }),
        Control::FailReads(failing) => failing.json("fail-reads"),
        Control::FailWrites(failing) => failing.json("fail-writes"),
        Control::Slow { us } => json!({ "do": "slow", "us": us }),
        Control::Fill { end } => json!({ "do": "fill", "full": !end }),
        Control::LoseWrites { times } => json!({ "do": "lose-writes", "times": times }),
        Control::MisdirectWrites { times } => json!({ "do": "misdirect-writes", "times": times }),
        Control::Rot { offset, bit } => json!({ "do": "rot", "offset": offset, "bit": bit }),
        Control::Heal => json!({ "do": "heal" }),
        Control::Stats => json!({ "do": "stats" }),
        Control::Snapshot { name } => json!({ "do": "snapshot", "name": name }),
        Control::Restore { name } => json!({ "do": "restore", "name": name }),
        Control::Stop => json!({ "do": "stop" }),
    };
    let armed = || {
        if !common.quiet {
            say("waiting for the point of the cut");
        }
    };
    let results = control(socket, &line, armed)?;
    let text = match (common.json, command) {
        (true, _) => format!("{}\n", Value::Array(vec![Value::Object(results)])),
        (false, Control::PowerCut { .. }) => cut_in_words(&results),
        (false, _) => results.iter().map(|(name, value)| format!("{name} {}\n", plain(value))).collect(),
    };
    written(io::stdout().write_all(text.as_bytes()))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn cut_in_words(results: &Map<String, Value>) -> String {
    let of = |name: &str| results.get(name).map(plain).unwrap_or_default();
    format!(
        "lost {} of {} unflushed pages, tore {}, dropped {} requests (seed {}, pattern {})\n",
        of("pages_lost"),
        of("pages_unflushed"),
        of("pages_torn"),
        of("requests_dropped"),
        of("seed"),
        of("pattern")
    )
}

/// Parses the point of a power cut.
fn point(text: &str) -> Result<Value, StackError> {
    let number = |text: &str| text.parse::<u64>().ok();
    let point = match text.split_once(':') {
        Some((name @ ("write" | "flush" | "unflushed"), nth)) => {
            number(nth).filter(|nth| *nth > 0).map(|nth| json!({ name: nth }))
        }
        Some(("write-to", range)) => range.split_once('+').and_then(|(offset, length)| {
            let (offset, length) = (number(offset)?, number(length)?);
            Some(json!({ "write-to": { "offset": offset, "length": length } }))
        }),
        _ => None,
    };
    point.ok_or_else(|| {
        StackError::request(format!(
            "--at {text} is no point of a run; accepted: write:N, flush:N, unflushed:N or write-to:OFFSET+BYTES"
        ))
    })
}
