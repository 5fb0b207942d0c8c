//! Tests the commands of `ctl`: each answer, and what a client sees.

use super::client::{Client, ENOSPC, FLUSH, WRITE};
use super::drive::Served;
use serde_json::Value;
use std::io::Write;

const VOLATILE: &str = "mem:page=4KiB,pages=1000 --speed max --power volatile";

/// Writes the pages `0..40`, and flushes none of them.
fn write_pages(served: &Served) {
    let mut client = served.client();
    for at in 0..40_u64 {
        client.write(at * 4_096, &[at as u8 + 1; 4_096]).unwrap();
    }
}

fn contents(served: &Served) -> Vec<u8> {
    served.client().read(0, 40 * 4_096).unwrap()
}

/// The rule: the seed of a power cut determines what is lost of the same state, and other seeds lose other writes.
#[test]
fn the_same_seed_loses_the_same_writes() {
    let served = Served::new(VOLATILE);
    served.told("snapshot empty");
    let mut seen: Vec<(Value, Vec<u8>)> = Vec::new();
    for seed in [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4] {
        served.told("restore empty");
        write_pages(&served);
        let report = served.told(&format!("power-cut --seed {seed}"));
        assert_eq!((&report["seed"], &report["pages_unflushed"]), (&seed.into(), &40.into()), "{report}");
        seen.push((report, contents(&served)));
    }
    assert_eq!(seen[..4], seen[8..]);
    assert!(seen[..8].iter().any(|(report, _)| report["pages_lost"] != seen[0].0["pages_lost"]));
    // A report agrees with the contents: a lost page has no byte of its write.
    for (report, contents) in &seen {
        let lost = contents.chunks(4_096).filter(|page| page.iter().all(|byte| *byte == 0)).count();
        assert_eq!(report["pages_lost"], lost, "{report}");
    }
}

/// The rule: a cut ends every connection, and what was flushed is there.
#[test]
fn a_cut_ends_connections_and_keeps_what_was_flushed() {
    let served = Served::new(VOLATILE);
    write_pages(&served);
    served.client().flush();
    let before = contents(&served);
    let mut client = served.client();
    let said = served.ctl("power-cut --seed 3");
    assert!(
        said.stdout.starts_with("lost 0 of 0 unflushed pages, tore 0, dropped 0 requests (seed 3, "),
        "{}",
        said.stdout
    );
    client.stream.set_nonblocking(false).unwrap();
    assert_eq!(client.answer(0), None, "the connection has ended");
    assert_eq!(contents(&served), before);
}

/// The rule: a drive that is to stay off refuses clients and says why, until it is switched on.
#[test]
fn a_drive_without_power_refuses_clients() {
    let served = Served::new(VOLATILE);
    served.told("power-cut --stay-off");
    let refused = served.qemu_io("read 0 4k");
    assert!(
        refused.code == 1 && refused.stdout.contains("the power of the drive is off"),
        "{}",
        refused.stdout
    );
    let again = served.ctl("power-cut");
    assert_eq!((again.code, again.stderr.lines().count()), (2, 1), "{}", again.stderr);
    assert!(again.stderr.contains("power-on first"), "{}", again.stderr);
    served.told("power-on");
    assert_eq!(served.qemu_io("read -P 0 0 4k").code, 0);
}

/// The rule: a cut at a point happens when the point is reached: its request and those behind it are never answered.
#[test]
fn a_cut_waits_for_its_point() {
    let served = Served::new(VOLATILE);
    let armed = served.cut_at("flush:2 --seed 1");
    let mut client = served.client();
    client.flush();
    client.write(0, &[1; 4_096]).unwrap();
    client.send(FLUSH, 0, 0, &[]);
    assert_eq!(client.answer(0), None, "the second flush is never answered");
    let report = armed.report();
    assert_eq!((&report["pages_unflushed"], &report["requests_dropped"]), (&1.into(), &1.into()), "{report}");
    for (point, offset) in [("write:2", 4_096), ("write-to:8192+4096", 8_192), ("unflushed:3", 4_096)] {
        let armed = served.cut_at(point);
        let mut client = served.client();
        let answered = [0, 4_096, 8_192, 12_288].into_iter().take_while(|at| {
            client.send(WRITE, *at, 4_096, &[2; 4_096]);
            client.answer(0).is_some()
        });
        let answered = answered.count() as u64;
        if point.starts_with("unflushed") {
            client.send(FLUSH, 0, 0, &[]);
            assert_eq!((answered, client.answer(0)), (4, None), "{point}");
        } else {
            assert_eq!(answered * 4_096, offset, "{point}");
        }
        assert_eq!(armed.report()["requests_dropped"], 1, "{point}");
    }
}

/// The rule: requests that arrive together with the one at whose submission the power is cut have no effect.
#[test]
fn nothing_is_submitted_after_the_point_of_a_cut() {
    let served = Served::new(VOLATILE);
    let armed = served.cut_at("write:3");
    let mut client = served.client();
    let requests: Vec<u8> =
        (0..9).flat_map(|at| client.request(WRITE, at * 4_096, 4_096, &[7; 4_096])).collect();
    client.stream.write_all(&requests).unwrap();
    while client.answer(0).is_some() {}
    let report = armed.report();
    assert_eq!(report["pages_unflushed"], 3, "{report}");
}

/// The rule: a cut that waits is told when another cut takes its place.
#[test]
fn a_cut_that_is_overtaken_ends() {
    let served = Served::new(VOLATILE);
    for next in ["power-cut", "power-cut --stay-off"] {
        let mut armed = served.cut_at("flush:99");
        served.told(next);
        let outcome = armed.outcome();
        assert_eq!((outcome.code, outcome.stderr.lines().count()), (2, 1), "{}", outcome.stderr);
    }
    served.told("power-on");
    let mut first = served.cut_at("flush:99");
    let second = served.cut_at("flush:1");
    assert_eq!(first.outcome().code, 2);
    served.client().send(FLUSH, 0, 0, &[]);
    assert_eq!(second.report()["requests_dropped"], 1);
}

/// The rule: a request to a range that fails is an error of the client, as often as was asked for, and others go on.
#[test]
fn failing_ranges_are_errors() {
    let served = Served::new(VOLATILE);
    served.told("fail-reads --offset 4096 --length 512");
    let failed = served.qemu_io("read 4k 512");
    assert!(
        failed.code == 1 && failed.stdout.contains("read failed: Input/output error"),
        "{}",
        failed.stdout
    );
    assert_eq!(served.qemu_io("read 0 4k; read 5k 4k; write 4k 4k").code, 0);
    served.told("heal");
    assert_eq!(served.qemu_io("read 4k 512").code, 0);
    served.told("fail-writes --offset 8192 --length 4096 --times 2");
    let mut client = served.client();
    let mut write = || client.write(8_192, &[3; 512]);
    assert_eq!([write(), write(), write()], [Err(5), Err(5), Ok(())]);
    let failed = served.qemu_io("write -P 9 0 4k");
    assert_eq!(failed.code, 0, "{}", failed.stdout);
}

/// The rule: writes to a full drive fail for lack of space, and reads do not.
#[test]
fn a_full_drive_has_no_space() {
    let served = Served::new(VOLATILE);
    served.client().write(0, &[1; 4_096]).unwrap();
    served.told("fill");
    let mut client = served.client();
    assert_eq!(client.write(0, &[2; 4_096]), Err(ENOSPC));
    assert_eq!(client.read(0, 4_096), Ok(vec![1; 4_096]));
    let failed = served.qemu_io("write 0 4k");
    assert!(failed.stdout.contains("No space left on device"), "{}", failed.stdout);
    served.told("fill --end");
    assert_eq!(client.write(0, &[2; 4_096]), Ok(()));
}

/// The rule: silent faults are seen only in the bytes: an inverted bit, a write without effect, a write elsewhere.
#[test]
fn silent_faults_change_bytes() {
    let served = Served::new(VOLATILE);
    let mut client = served.client();
    client.write(0, &[8; 4_096]).unwrap();
    served.told("rot 100 --bit 3");
    let mut expected = vec![8; 4_096];
    expected[100] = 0;
    assert_eq!(client.read(0, 4_096).as_ref(), Ok(&expected));
    served.told("lose-writes 1");
    assert_eq!(client.write(0, &[5; 4_096]), Ok(()));
    assert_eq!(client.read(0, 4_096), Ok(expected));
    served.told("misdirect-writes 1");
    assert_eq!(client.write(8_192, &[5; 4_096]), Ok(()));
    assert_eq!(
        (client.read(8_192, 4_096), client.read(16_384, 4_096)),
        (Ok(vec![0; 4_096]), Ok(vec![5; 4_096]))
    );
    assert_eq!(client.write(8_192, &[6; 4_096]), Ok(()));
    assert_eq!(client.read(8_192, 4_096), Ok(vec![6; 4_096]));
}

/// The rule: a snapshot brings the contents back, as often as it is restored.
#[test]
fn a_snapshot_brings_the_contents_back() {
    let served = Served::new(VOLATILE);
    let mut client: Client = served.client();
    for (name, byte) in [("one", 1), ("two", 2)] {
        client.write(0, &[byte; 4_096]).unwrap();
        served.told(&format!("snapshot {name}"));
    }
    for (name, byte) in [("one", 1), ("two", 2), ("one", 1)] {
        client.write(0, &[9; 4_096]).unwrap();
        served.told(&format!("restore {name}"));
        assert_eq!(client.read(0, 4_096), Ok(vec![byte; 4_096]), "{name}");
    }
}

/// The rule: the figures so far are those of the row at the end.
#[test]
fn stats_are_the_row_so_far() {
    let served = Served::new("sata:blocks=20,pages=8,channels=2 --speed max --json");
    let mut client = served.client();
    client.write(0, &[1; 4_096]).unwrap();
    client.read(0, 4_096).unwrap();
    let text = served.ctl("stats").stdout;
    assert!(text.contains("\nops 2\n") && text.contains("\nreads 1\n"), "{text}");
    let stats = served.told("stats");
    let row = served.row();
    for column in ["ops", "reads", "writes", "host_pages_written", "read_latency_mean_ns", "run_id"] {
        assert_eq!((&stats[column], stats[column].is_null()), (&row[column], false), "{column}");
    }
}

/// The rule: a command that the drive refuses ends with exit code 2 and one sentence.
#[test]
fn wrong_commands_are_refused_in_one_sentence() {
    let served = Served::new(VOLATILE);
    served.client().write(0, &[1; 4_096]).unwrap();
    served.told("snapshot mine");
    for (command, words) in [
        ("restore yours", "there is no snapshot `yours`; accepted: mine"),
        ("rot 999999999", "nothing was written at offset 999999999"),
        ("rot 0 --bit 8", "0 to 7"),
        ("slow 9000000000000", "accepted: 0 to"),
        ("power-cut --at sometime", "--at sometime is no point of a run"),
        ("power-cut --at write:0", "--at write:0 is no point of a run"),
        ("power-cut --seed x", "seed"),
        ("explode", "explode"),
    ] {
        let outcome = served.ctl(command);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{command}: {}", outcome.stderr);
        assert_eq!(outcome.stderr.lines().count(), 1, "{command}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(words), "{command}: {}", outcome.stderr);
    }
    assert_eq!(served.client().read(0, 4_096), Ok(vec![1; 4_096]));
}
