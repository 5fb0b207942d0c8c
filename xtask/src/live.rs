//! Checks the page of a served drive in a browser.
//!
//! The page is opened at its server, so that a violation of its policy would be written to the console. A copy of it
//! with recorded states, in which values change, is looked at as a report is, at every width and in both themes. It
//! must also say that the drive has ended.

use crate::browser::{WIDTHS, look};
use crate::{build, packages, root};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The drive that is served: one with all parts of the page.
const DRIVE: &str = "p4510";

/// Gives the page the state `RECORDED` whenever it asks, with values that change, and `AFTERWARDS` after `STATES`
/// times.
const PLAYED: &str = "
let asked = 0;
const fetch = async () => {
  asked += 1;
  if (asked > STATES) return AFTERWARDS;
  const state = RECORDED;
  const wave = (Math.sin(asked / 3) + 1) / 2;
  state.time_s += asked / 2;
  for (const kind of [state.reads, state.writes]) {
    Object.assign(kind, { count: asked * 12345, per_s: 98765 * wave, bytes_per_s: 4.1e8 * wave });
    if (asked % 9 !== 8) kind.latency = { mean_ns: 9e4, p50_ns: 8e4, p99_ns: 9e5 * (1 + wave), p999_ns: 7e6 };
  }
  Object.assign(state, { in_flight: 64, waiting: 12, late_share: 0.123, lateness_mean_ns: 12345, faults: ['slow'] });
  state.waf = { start: 1.94, recent: 2.13 };
  state.buffer.bytes = state.buffer.capacity_bytes * wave;
  state.collection = 'urgent';
  state.channels = state.channels.map((_, at) => wave * at / 8);
  state.dies.forEach((die, at) => {
    die.collects = at % 3 === 0;
    die.busy = { read: wave / 4, program: at / 64, move_read: 0.1, move_program: 0.1, erase: 0.05 };
  });
  return { ok: true, json: async () => state };
};";

/// A server, which ends with the check.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Serves a drive in `folder`. Returns the server, and the host and port of its page.
fn serve(folder: &Path) -> Result<(Server, String)> {
    let child = Command::new(build::command()?)
        .args(["serve", DRIVE, "--nbd", "unix:drive.sock", "--http", "127.0.0.1:0"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut server = Server(child);
    let mut greeting = String::new();
    let stderr = server.0.stderr.take().context("no standard error")?;
    BufReader::new(stderr).read_line(&mut greeting)?;
    let host = greeting.split("http://").nth(1).and_then(|rest| rest.split('/').next());
    let host = host.with_context(|| format!("no page: {greeting}"))?.to_owned();
    Ok((server, host))
}

/// Returns what the server has at `path`.
fn get(host: &str, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(host)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
    ensure!(head.starts_with("HTTP/1.1 200 "), "{path}: {head}");
    Ok(body.to_owned())
}

/// Opens a page, and returns its content after `seconds` of its time. Nothing may be written to the console.
fn opened(browser: &Path, url: &str, seconds: u32) -> Result<String> {
    let dumped = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"])
        .args([&format!("--virtual-time-budget={}", 1_000 * seconds), url])
        .output()
        .context("the browser cannot be started")?;
    let log = String::from_utf8_lossy(&dumped.stderr);
    let said: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    ensure!(said.is_empty(), "the console is not empty:\n{}", said.join("\n"));
    Ok(String::from_utf8_lossy(&dumped.stdout).into_owned())
}

/// Checks the page of a served drive.
pub(crate) fn check() -> Result<()> {
    let browser = packages::browser()?;
    let folder = root().join("target").join("reports").join("live");
    fs::create_dir_all(&folder)?;
    let folder = folder.canonicalize()?;
    let (server, host) = serve(&folder)?;
    let (page, state) = (get(&host, "/")?, get(&host, "/live")?);
    let shown = opened(&browser, &format!("http://{host}/"), 2)?;
    for text in [&format!("<h1 id=\"title\">{DRIVE}, "), "on the drive's clock", "data-ready=\"4\""] {
        ensure!(shown.contains(text), "the page of the server lacks {text}: {shown}");
    }
    drop(server);
    let played = |states: &str, afterwards: &str| {
        let played = PLAYED.replace("RECORDED", &state);
        let played = played.replace("STATES", states).replace("AFTERWARDS", afterwards);
        page.replace("\"use strict\";", &format!("\"use strict\";{played}"))
    };
    for theme in ["light", "dark"] {
        look(&browser, &folder, &played("12", "new Promise(() => {})"), WIDTHS, theme)
            .with_context(|| format!("page of a served drive, {theme}"))?;
    }
    let last = folder.join("ended.html");
    fs::write(&last, played("2", "Promise.reject(new Error())"))?;
    let ended = opened(&browser, &format!("file://{}", last.display()), 4)?;
    ensure!(ended.contains("The drive has ended. This is its last state."), "the end is not told: {ended}");
    println!("serve {DRIVE} --http: nothing to complain about; {}", folder.display());
    Ok(())
}
