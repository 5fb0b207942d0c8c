//! Tests `--http`: the page, the state for programs and the metrics of a served drive.

use super::client::{Client, PATIENCE};
use super::drive::Served;
use crate::folder::{Folder, number};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

/// A small drive that collects after a few thousand writes.
const SMALL: &str = "sata:blocks=20,pages=8,channels=2";

/// Serves a drive with a page at a free port. Returns the host and port of the page too.
fn shown(arguments: &str) -> (Served, String) {
    let served = Served::new(&format!("{arguments} --http 127.0.0.1:0"));
    let page = served.greeting.split("http://").nth(1).and_then(|rest| rest.split('/').next());
    let host = page.unwrap_or_else(|| panic!("{} names no page", served.greeting)).to_owned();
    (served, host)
}

/// Sends a request as it is, and returns the status, the headers and the body of the answer. `None` if the server
/// closes the connection.
fn sent(host: &str, request: &str) -> Option<(u16, String, String)> {
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // The server may have refused the connection, or have answered before everything is sent.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answer) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ").unwrap()[..3].parse().unwrap();
    Some((status, head.to_ascii_lowercase(), body.to_owned()))
}

/// Returns the body of an answer to a proper request, which must be found and have the length that it says.
fn get(host: &str, path: &str) -> String {
    let answer = sent(host, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    let (status, head, body) = answer.unwrap_or_else(|| panic!("{path}: no answer"));
    assert_eq!(status, 200, "{path}: {head}");
    assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{path}: {head}");
    body
}

fn live(host: &str) -> Value {
    serde_json::from_str(&get(host, "/live")).unwrap()
}

/// Returns the value of the metric whose line begins with `name`.
fn metric(metrics: &str, name: &str) -> f64 {
    let line = metrics.lines().find(|line| line.starts_with(&format!("{name} ")));
    let line = line.unwrap_or_else(|| panic!("{name} is missing in {metrics}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Writes pages at places all over the drive, and reads every fourth of them.
fn write_everywhere(client: &mut Client, writes: u64) {
    let pages = client.bytes / 4_096;
    for at in 0..writes {
        let offset = at.wrapping_mul(0x9e37_79b9) % pages * 4_096;
        client.write(offset, &[7; 4_096]).unwrap();
        if at % 4 == 0 {
            client.read(offset, 4_096).unwrap();
        }
    }
    client.flush();
}

/// The rule: the state and the metrics have the figures of `ctl stats`, and tell of dies and segments what is possible:
/// a die is busy for at most the whole time, and collection has erased.
#[test]
fn the_state_and_the_metrics_agree_with_the_figures() {
    let (served, host) = shown(&format!("{SMALL} --speed max"));
    write_everywhere(&mut served.client(), 3_000);
    // Requests that do not look leave the state as it is.
    assert!(get(&host, "/").contains("<title>"));
    let (state, metrics, stats) = (live(&host), get(&host, "/metrics"), served.told("stats"));
    for (column, value, name) in [
        ("reads", &state["reads"]["count"], "request_latency_seconds_count{op=\"read\"}"),
        ("writes", &state["writes"]["count"], "request_latency_seconds_count{op=\"write\"}"),
        ("host_pages_written", &state["host_pages_written"], "host_written_pages_total"),
        ("gc_pages_copied", &state["gc_pages_copied"], "copied_pages_total"),
        ("flash_pages_read", &state["flash_pages_read"], "read_pages_total"),
        ("erases", &state["erases"], "erases_total"),
    ] {
        let expected = number(&stats, column);
        assert!(expected > 0.0, "{column}");
        assert_eq!(value.as_f64(), Some(expected), "{column}");
        assert_eq!(metric(&metrics, &format!("fulgurite_drive_{name}")), expected, "{column}");
    }
    let latency_s = metric(&metrics, "fulgurite_drive_request_latency_seconds_sum{op=\"write\"}");
    for (shown, told) in [
        (number(&state["waf"], "start"), number(&stats, "waf")),
        (number(&state, "time_s"), number(&stats, "elapsed_ns") / 1e9),
        (latency_s / 3_000.0, number(&stats, "write_latency_mean_ns") / 1e9),
    ] {
        assert!((shown / told - 1.0).abs() < 1e-9, "{shown} {told}");
    }
    let dies = state["dies"].as_array().unwrap();
    let busy: Vec<f64> = dies
        .iter()
        .map(|die| die["busy"].as_object().unwrap().values().map(|share| share.as_f64().unwrap()).sum())
        .collect();
    assert!(busy.iter().all(|busy| (0.01..=1.001).contains(busy)), "{busy:?}");
    assert!(dies.iter().any(|die| number(&die["busy"], "erase") > 0.0));
    assert_eq!(state["channels"].as_array().unwrap().len(), 2);
    assert!(number(&state["segments"], "free") <= number(&state["segments"], "all"));
    for part in ["buffer", "collection"] {
        assert!(!state[part].is_null(), "{part}");
    }
}

/// The rule: what a drive does not have is left out.
#[test]
fn a_drive_without_flash_has_no_dies() {
    let (served, host) = shown("mem:page=4KiB,pages=1000 --speed max");
    served.client().write(0, &[1; 8_192]).unwrap();
    let (state, metrics) = (live(&host), get(&host, "/metrics"));
    assert_eq!(state["writes"]["count"], 1);
    for part in ["dies", "channels", "segments", "buffer", "collection", "waf", "erases", "speed"] {
        assert!(state.get(part).is_none(), "{part}: {state}");
    }
    for name in ["die_busy", "free_segments", "erases", "programmed_pages", "lateness"] {
        assert!(!metrics.contains(name), "{name}: {metrics}");
    }
    assert_eq!(metric(&metrics, "fulgurite_drive_request_bytes_total{op=\"write\"}"), 8_192.0);
}

/// The rule: power, power cuts and faults are seen, on a drive to which nobody sends requests.
#[test]
fn power_and_faults_are_seen() {
    let (served, host) = shown(&format!("{SMALL} --speed 1x"));
    served.told("slow 5000");
    served.told("power-cut --stay-off");
    let start = Instant::now();
    while live(&host)["power"] != "off" {
        assert!(start.elapsed() < PATIENCE);
    }
    let state = live(&host);
    assert_eq!(
        (&state["faults"], &state["power_cuts"]),
        (&serde_json::json!(["slow"]), &serde_json::json!(1))
    );
    assert_eq!(metric(&get(&host, "/metrics"), "fulgurite_drive_power_on"), 0.0);
}

/// The rule: the dashboard shows every metric, and asks for no other. Every line of the metrics has its form.
#[test]
fn the_dashboard_shows_every_metric() {
    let (served, host) = shown(&format!("{SMALL} --speed 1000x --frames 10"));
    write_everywhere(&mut served.client(), 10);
    let metrics = get(&host, "/metrics");
    let kinds: Vec<(&str, &str)> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')))
        .collect();
    let family = |name: &str| {
        let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|part| name.strip_suffix(part));
        of_histogram.filter(|name| kinds.contains(&(name, "histogram"))).unwrap_or(name).to_owned()
    };
    let known: BTreeSet<String> = kinds.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(known.len(), kinds.len(), "a metric is there twice");
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let (sample, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = sample.split_once('{').unwrap_or((sample, "}"));
        assert!(known.contains(&family(name)) && labels.ends_with('}'), "{line}");
        assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
    }
    let dashboard = std::fs::read_to_string("../../docs/how-to/grafana-serve.json").unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 36);
    let targets =
        dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| panel["targets"].as_array());
    let mut asked = BTreeSet::new();
    for target in targets.flatten() {
        let words =
            target["expr"].as_str().unwrap().split(|part: char| part != '_' && !part.is_alphanumeric());
        asked.extend(words.filter(|word| word.starts_with("fulgurite_")).map(family));
    }
    assert_eq!(asked, known);
}

/// The rule: only a request that names this machine is answered, only by GET, and only at known paths.
#[test]
fn other_requests_are_refused() {
    let (_served, host) = shown("mem:page=4KiB,pages=1000 --speed max");
    let long = "x".repeat(9_000);
    for (request, expected) in [
        ("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), 200),
        (format!("GET /live?x=1 HTTP/1.1\r\nHost: {host}\r\n\r\n"), 200),
        ("GET /live HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(), 403),
        ("GET /live HTTP/1.1\r\n\r\n".to_owned(), 403),
        ("GET /live HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n".to_owned(), 403),
        (format!("GET /../etc/passwd HTTP/1.1\r\nHost: {host}\r\n\r\n"), 404),
        (format!("POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 3\r\n\r\nabc"), 405),
        (format!("GET / HTTP/1.1\r\nHost: {host}\r\nX: {long}\r\n\r\n"), 431),
        ("\u{16}\u{3}\u{1}\r\n\r\n".to_owned(), 400),
    ] {
        let (status, head, _) = sent(&host, &request).unwrap_or_else(|| panic!("{request}: no answer"));
        assert_eq!(status, expected, "{request}: {head}");
        for header in
            ["cache-control: no-store", "content-security-policy: default-src 'none'", "connection: close"]
        {
            assert!(head.contains(header), "{request}: {head}");
        }
        assert_eq!(head.contains("allow: get"), status == 405, "{head}");
        assert!(!head.contains("access-control"), "{head}");
    }
}

/// The rule: clients that send half a request, and a thousand connections at once, disturb neither the drive nor, when
/// they have gone, those who look.
#[test]
fn slow_clients_and_many_connections_disturb_nobody() {
    let (served, host) = shown("mem:page=4KiB,pages=1000 --speed max");
    let mut client = served.client();
    let slow = || {
        let mut stream = TcpStream::connect(&host).unwrap();
        // The server closes connections beyond its limit.
        let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: ");
        stream
    };
    let few: Vec<TcpStream> = (0..15).map(|_| slow()).collect();
    assert!(get(&host, "/").contains("<title>"));
    let many: Vec<TcpStream> = (0..1_000).map(|_| slow()).collect();
    for byte in 0..100 {
        client.write(4_096, &[byte; 4_096]).unwrap();
        assert_eq!(client.read(4_096, 4_096), Ok(vec![byte; 4_096]));
    }
    drop((few, many));
    let start = Instant::now();
    while sent(&host, &format!("GET /live HTTP/1.1\r\nHost: {host}\r\n\r\n")).is_none() {
        assert!(start.elapsed() < PATIENCE);
    }
    assert_eq!(live(&host)["reads"]["count"], 100);
}

/// The rule: the page ends with the drive, and other machines see it only if the user says so.
#[test]
fn the_page_ends_with_the_drive() {
    let (served, host) = shown("mem:page=4KiB,pages=1000 --speed max --json");
    live(&host);
    served.row();
    assert!(TcpStream::connect(&host).is_err());
    let remote =
        Served::within(Folder::new(), "mem:page=4KiB,pages=1000 --speed max --remote --http 0.0.0.0:0");
    let port = remote.greeting.rsplit(':').next().and_then(|rest| rest.split('/').next()).unwrap();
    let answer = sent(&format!("127.0.0.1:{port}"), "GET /live HTTP/1.1\r\nHost: drive.example\r\n\r\n");
    assert_eq!(answer.unwrap().0, 200);
}
