//! Tests of a run of `serve`: its settings, the devices that it refuses, and that the statistics of a served drive
//! are those of a replay of the same requests.

use fulgurite_base::{Lpn, Nanos, Prng};
use fulgurite_device::{Command, Device, Operation, Tag};
use fulgurite_stack::serve::Served;
use fulgurite_stack::settings::{self, Workloads};
use fulgurite_stack::{Column, Command as Runs, Load, Progress, Row, Run, StackError};
use fulgurite_workload::Op;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A drive so small that a few thousand writes make it collect garbage. Its flush takes no time, because a replay ends
/// with a flush and a served drive does not.
const DRIVE: &str = "virtual:channels=2,chips=1,dies=1,planes=1,blocks=32,pages=32,op=40%,precondition=fill,\
                     write_cache=protected,write_command_us=0,write_latency_us=0";

fn run(values: &[(&str, &str)]) -> Result<Run, StackError> {
    settings::run(Runs::Serve, &values.iter().copied().collect(), &mut Workloads::default())
}

/// The rule: `serve` has the settings of the device, of a pool before it and the seed, and no others.
#[test]
fn it_has_the_settings_of_the_device_and_the_pool() {
    let names: Vec<&str> = Runs::Serve.settings().map(|setting| setting.name).collect();
    let of_pool = ["replacement", "write_back", "prefetch", "frames"];
    assert_eq!(names[..5], ["device", "layer", "placement", "victim", "schedule"]);
    assert_eq!((&names[5..9], &names[9..]), (&of_pool[..], &["seed"][..]));
    let run = run(&[("device", DRIVE), ("schedule", "paced"), ("seed", "7")]).unwrap();
    assert!(matches!(run.load, Load::Served) && run.command() == Runs::Serve);
    assert_eq!(run.seed, 7);
    assert!(run.canonical().unwrap().starts_with("serve device=virtual"), "{}", run.canonical().unwrap());
}

/// The rule: a real drive and no drive are refused with one sentence that says what is accepted.
#[test]
fn only_simulated_drives_are_served() {
    let refused = |values: &[(&str, &str)]| {
        let error = run(values).map(drop).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    };
    for device in ["file:/tmp/no-such-drive", "none"] {
        let said = refused(&[("device", device)]);
        assert!(said.starts_with(&format!("device {device}: serve gives simulated drives")), "{said}");
        assert!(said.contains("nbdkit") && said.contains("; accepted: a preset"), "{said}");
    }
    assert_eq!(refused(&[]), "device is missing");
    assert!(refused(&[("device", "mem"), ("victim", "fifo")]).contains("collects no garbage"));
    assert!(refused(&[("device", "p4510"), ("users", "4")]).contains("unknown setting"));
    for accepted in ["mem", "optane", "p4510:channels=4"] {
        run(&[("device", accepted)]).unwrap();
    }
    // A program may build a run that no setting describes.
    let mut odd = run(&[("device", "p4510")]).unwrap();
    let engine = [("benchmark", "ycsb-a")].into();
    odd.stack.engine = settings::run(Runs::Bench, &engine, &mut Workloads::default()).unwrap().stack.engine;
    assert!(odd.check().unwrap_err().to_string().contains("not a store"));
    assert!(Served::open(&odd).is_err());
}

/// The rule: a pool before a served drive is refused with a reason if its policies do not suit it, and a policy without
/// a pool too.
#[test]
fn a_pool_that_cannot_be_is_refused() {
    let refused = |values: &[(&str, &str)]| {
        let error = run(values).map(drop).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    };
    for (name, policy) in [("replacement", "lru"), ("write_back", "ace:n_w=4"), ("prefetch", "sequential")] {
        let said = refused(&[("device", "p4510"), (name, policy)]);
        let flag = name.replace('_', "-");
        assert!(
            said.starts_with(&format!("--{flag} {policy}")) && said.contains("accepted: --frames"),
            "{said}"
        );
    }
    let cases: [(&[(&str, &str)], &str); 5] = [
        (&[("frames", "0")], "--frames 0 for 819200 pages"),
        (&[("frames", "10"), ("replacement", "belady")], "needs to know all requests beforehand"),
        (&[("frames", "2"), ("write_back", "raw:buffers=2")], "takes 2 of 2 frames"),
        (
            &[("frames", "10"), ("device", "mem"), ("replacement", "cflru-e")],
            "how often erase blocks were erased",
        ),
        (
            &[("frames", "10"), ("device", "file:/tmp/no-such-drive"), ("write_back", "ace")],
            "serve gives simulated",
        ),
    ];
    for (values, expected) in cases {
        let mut values = values.to_vec();
        if !values.iter().any(|(name, _)| *name == "device") {
            values.push(("device", "p4510"));
        }
        let said = refused(&values);
        assert!(said.contains(expected), "{said}");
    }
    let usual = run(&[("device", "p4510"), ("frames", "100")]).unwrap().canonical().unwrap();
    assert!(usual.contains("replacement=lru") && usual.contains("write_back=single:n_w=1"), "{usual}");
}

/// The rule: a pool before a served drive decides as the pool of `pool` does for the same requests. It reads less,
/// since a write to a served drive replaces whole pages.
#[test]
fn its_pool_decides_as_that_of_a_pool_run() {
    for write_back in ["single", "ace:n_w=8"] {
        let values =
            [("device", DRIVE), ("frames", "50"), ("write_back", write_back), ("replacement", "cflru")];
        let pages = run(&values).unwrap().stack.pages() / 4;
        let requests = requests(pages);
        let path = trace(&requests, &write_back[..3]);
        let pool = [("workload", path.to_str().unwrap()), ("format", "page-ops"), ("users", "1")];
        let pool = values.into_iter().chain(pool).collect();
        let pool = settings::run(Runs::Pool, &pool, &mut Workloads::default()).unwrap();
        let expected = pool.execute(&Progress::default()).unwrap().remove(0);
        let served = serve(&values, &requests);
        for column in [
            Column::Replacement,
            Column::WriteBack,
            Column::NW,
            Column::Frames,
            Column::Hits,
            Column::Misses,
            Column::HitRatio,
            Column::WriteIos,
            Column::PagesWritten,
            Column::PagesFlushed,
            Column::HostPagesWritten,
        ] {
            assert!(served.get(column).is_some(), "{column}");
            assert_eq!(served.get(column), expected.get(column), "{column} with {write_back}");
        }
        let read = served.number(Column::PagesRead).unwrap();
        assert!(read > 100.0 && read < served.number(Column::Misses).unwrap() / 2.0, "{read} pages read");
        assert!(served.number(Column::PagesFlushed) > Some(10.0));
    }
}

/// The rule: a served drive is no run with rows, so executing it is refused. Only a run of `serve` is served.
#[test]
fn it_is_not_executed() {
    let error = run(&[("device", "mem")]).unwrap().execute(&Progress::default()).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().starts_with("serve gives a drive to other programs"), "{error}");
    let values = [("workload", "mixed-skewed"), ("device", "mem"), ("users", "1")].into();
    let replay = settings::run(Runs::Replay, &values, &mut Workloads::default()).unwrap();
    assert!(Served::open(&replay).is_err());
}

/// Requests to single pages: the operation and the page.
fn requests(pages: u64) -> Vec<(Op, u64)> {
    let mut prng = Prng::new(3, "requests");
    let mut request = || (if prng.below(3) == 0 { Op::Read } else { Op::Write }, prng.below(pages));
    (0..6_000).map(|_| request()).collect()
}

/// Writes the requests to a trace of the format `page-ops`, and returns its path.
fn trace(requests: &[(Op, u64)], name: &str) -> PathBuf {
    let trace = requests.iter().fold(String::new(), |mut trace, (op, page)| {
        writeln!(trace, "{} {page}", if *op == Op::Read { "R" } else { "W" }).unwrap();
        trace
    });
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("served-{name}.txt"));
    std::fs::write(&path, trace).unwrap();
    path
}

/// Serves the requests one after the other, and returns the row at the end.
fn serve(values: &[(&str, &str)], requests: &[(Op, u64)]) -> Row {
    let Served { mut device, mut statistics } = Served::open(&run(values).unwrap()).unwrap();
    let mut completions = Vec::new();
    for (at, (op, page)) in requests.iter().enumerate() {
        let (tag, began) = (Tag(at as u64), device.now());
        let operation = match op {
            Op::Read => Operation::read(Lpn(*page), 1),
            _ => Operation::write(Lpn(*page), 1),
        };
        device.submit(Command { tag, operation }).unwrap();
        device.wait(None, &mut completions);
        statistics.request(*op, 1, completions.pop().unwrap().at - began);
        if at % 100 == 0 {
            statistics.collect_waits(&mut device);
        }
    }
    let elapsed = device.now();
    let so_far = statistics.row(&mut device, elapsed).unwrap();
    assert_eq!(so_far.number(Column::Ops), Some(requests.len() as f64));
    statistics.end(&mut device).unwrap();
    statistics.row(&mut device, elapsed).unwrap()
}

/// The rule: the row of a served drive has the columns of a replay of the same requests, with the same values. It lacks
/// those about the workload, its trace, and the queue in front of the drive.
#[test]
fn its_row_is_that_of_a_replay_of_the_same_requests() {
    for layer in ["none", "log:segment=64KiB,op=40%"] {
        let values = [("device", DRIVE), ("layer", layer)];
        let pages = run(&values).unwrap().stack.pages();
        let requests = requests(pages);
        let path = trace(&requests, &layer[..3]);
        let replayed = [
            ("workload", path.to_str().unwrap()),
            ("format", "page-ops"),
            ("addresses", "wrap"),
            ("users", "1"),
        ];
        let replayed = values.into_iter().chain(replayed).collect();
        let replayed = settings::run(Runs::Replay, &replayed, &mut Workloads::default()).unwrap();
        let mut expected = replayed.execute(&Progress::default()).unwrap().remove(0);
        let mut served = serve(&values, &requests);
        assert!(served.get(Column::SimWallS).is_some());
        expected.drop_cost();
        served.drop_cost();
        let only_replayed = [Column::RunId, Column::Workload, Column::Users, Column::WaitQueueMeanNs];
        let of_trace = [Column::Skipped, Column::TimesClamped];
        let is_compared = |column: &Column| !only_replayed.contains(column) && !of_trace.contains(column);
        let kept: Vec<Column> = Column::all().filter(is_compared).collect();
        expected.keep(&kept);
        served.keep(&kept);
        for column in &kept {
            assert_eq!(served.get(*column), expected.get(*column), "{column} with layer {layer}");
        }
        let copied = if layer == "none" { Column::GcPagesCopied } else { Column::LayerPagesCopied };
        assert!(served.number(copied) > Some(100.0), "{:?}", served.number(copied));
        assert_eq!(served.get(Column::WaitGcMeanNs).is_some(), layer == "none");
    }
}

/// The rule: the next event of the served device is told, so that a server can sleep until it.
#[test]
fn the_next_event_of_the_device_is_told() {
    for (device, layer, frames) in [
        (DRIVE, "none", ""),
        (DRIVE, "log:segment=64KiB,op=40%", ""),
        ("mem", "none", ""),
        (DRIVE, "none", "9"),
    ] {
        let mut values = vec![("device", device), ("layer", layer)];
        values.extend((!frames.is_empty()).then_some(("frames", frames)));
        let mut device = Served::open(&run(&values).unwrap()).unwrap().device;
        device.submit(Command { tag: Tag(1), operation: Operation::read(Lpn(0), 1) }).unwrap();
        let mut completions = Vec::new();
        while completions.is_empty() {
            let next = device.next_event().unwrap();
            device.wait(Some(next), &mut completions);
        }
        assert!(device.now() < Nanos::from_micros(10_000));
    }
}
