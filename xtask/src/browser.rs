//! The report as people see it: every built-in study, drawn by a real browser without a window.
//!
//! A page passes if all of its plots were drawn with marks in them, nothing was written to the
//! console, and it did so in light and dark and on a narrow screen. Screenshots are left in
//! `target/reports` for people to look at.

use crate::{build, root, run};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

const STUDIES: &[&str] = &[
    "quickstart",
    "write-concurrency",
    "waf-closed-form",
    "preemptive-gc",
    "emulated-drive",
    "midas",
    "ace",
    "ace-emulated",
    "raw",
];
/// Names that a browser may have.
const BROWSERS: &[&str] = &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Ways to look at a page: a name, the window, and what else the browser is told.
const VIEWS: &[(&str, &str, &[&str])] = &[
    ("light", "1200,2800", &[]),
    ("dark", "1200,2800", &["--blink-settings=preferredColorScheme=0"]),
    ("narrow", "420,2800", &[]),
];

/// Runs every built-in study and looks at its report.
pub fn check() -> Result<()> {
    let browser = find()?;
    let command = build::command()?;
    let reports = root().join("target").join("reports");
    fs::create_dir_all(&reports)?;
    let reports = reports.canonicalize()?;
    for study in STUDIES {
        let out = reports.join(study);
        run(Command::new(&command)
            .args(["study", study, "--quick", "--json", "--out"])
            .arg(&out)
            .stdout(Stdio::null()))?;
        look_at_all_views(&browser, &out.join("report.html"))
            .with_context(|| format!("report of {study}"))?;
        println!("{study}: drawn in every view; {}", out.display());
    }
    broken_pages_are_noticed(&browser, &reports.join(STUDIES[0]).join("report.html"))
}

fn look_at_all_views(browser: &Path, page: &Path) -> Result<()> {
    thread::scope(|scope| {
        let looks: Vec<_> = VIEWS
            .iter()
            .map(|view| scope.spawn(|| look(browser, page, view).with_context(|| view.0)))
            .collect();
        looks.into_iter().try_for_each(|look| look.join().expect("looking does not panic"))
    })
}

/// Ways to break a page: what stands in it, what is put in its place, what the check must say.
const BREAKS: &[(&str, &str, &str)] = &[
    ("echarts.init(", "echarts.absent(", "console is not empty"),
    ("\"use strict\";", "console.log('a word');", "console is not empty"),
    // Nothing is drawn, or what is drawn is empty: the browser may come to either.
    ("chart.setOption(", "void (", "plot"),
    ("\n      series,\n", "\n      series: [],\n", "a plot is empty"),
];

/// The check itself is checked: it must notice every broken page, for the right reason.
fn broken_pages_are_noticed(browser: &Path, page: &Path) -> Result<()> {
    let sound = fs::read_to_string(page)?;
    let broken = page.with_file_name("broken.html");
    for (from, to, complaint) in BREAKS {
        // The last occurrence is ours: the library may contain the same text.
        let (before, after) =
            sound.rsplit_once(from).with_context(|| format!("{from} is not in the page"))?;
        fs::write(&broken, format!("{before}{to}{after}"))?;
        let verdict = look(browser, &broken, &VIEWS[0]).map_err(|error| format!("{error:#}"));
        ensure!(
            verdict.as_ref().is_err_and(|error| error.contains(complaint)),
            "a page with {to} for {from} was found to be {verdict:?}"
        );
    }
    fs::remove_file(&broken)?;
    println!("{} broken pages were noticed", BREAKS.len());
    Ok(())
}

/// Draws `page` and fails unless all is well with it.
fn look(browser: &Path, page: &Path, (view, window, options): &(&str, &str, &[&str])) -> Result<()> {
    let screenshot = page.with_file_name(format!("{view}.png"));
    // One of an earlier run would pass for this one's.
    let _ = fs::remove_file(&screenshot);
    let dumped = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"])
        .args(["--virtual-time-budget=10000", &format!("--window-size={window}"), "--dump-dom"])
        .arg(format!("--screenshot={}", screenshot.display()))
        .args(*options)
        .arg(format!("file://{}", page.display()))
        .output()
        .context("the browser cannot be started")?;
    let log = String::from_utf8_lossy(&dumped.stderr);
    let said: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    ensure!(said.is_empty(), "the console is not empty:\n{}", said.join("\n"));
    let dom = String::from_utf8_lossy(&dumped.stdout);
    let plots = attribute(&dom, "data-plots").context("the page did not load")?;
    let ready = attribute(&dom, "data-ready").context("the page's script did not run")?;
    ensure!(plots == ready && plots != "0", "{ready} of {plots} plots were drawn");
    let drawn: Vec<usize> = dom.split("id=\"plot-").skip(1).map(marks).collect();
    ensure!(drawn.len().to_string() == plots, "{} of {plots} plots are on the page", drawn.len());
    ensure!(drawn.iter().all(|marks| *marks > 3), "a plot is empty: {drawn:?} marks in each");
    let theme = attribute(&dom, "data-theme").unwrap_or_default();
    ensure!((theme == "dark") == (*view == "dark"), "the page is {theme}");
    ensure!(fs::metadata(&screenshot).is_ok_and(|file| file.len() > 10_000), "no screenshot was made");
    Ok(())
}

/// How many shapes of a plot have the colour of its first series, light or dark: one in the legend,
/// one for every value. The fields of a heat map have mixed colours, which alone are written as `rgb`.
fn marks(plot: &str) -> usize {
    let drawing = plot.split("</svg>").next().unwrap_or_default();
    drawing.matches("#0072b2").count()
        + drawing.matches("#4aa3df").count()
        + drawing.matches("fill=\"rgb(").count()
}

fn attribute<'a>(dom: &'a str, name: &str) -> Option<&'a str> {
    // The libraries' scripts may name the attribute too: only markup writes it with its value.
    let (_, rest) = dom.split_once(&format!(" {name}=\""))?;
    rest.split('"').next()
}

/// The browser, or how to get one.
pub fn find() -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    BROWSERS
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|file| file.is_file())
        .with_context(|| {
            format!(
                "there is no browser ({}); `cargo xtask ci --install` installs Debian's chromium and then checks",
                BROWSERS.join(", ")
            )
        })
}

/// Installs a browser if there is none. Only ever called because somebody asked for it with `--install`.
pub fn install() -> Result<()> {
    if find().is_ok() {
        return Ok(());
    }
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
    let (program, first): (&str, &[&str]) =
        if is_root { ("apt-get", &[]) } else { ("sudo", &["-n", "apt-get"]) };
    let apt = |arguments: &[&str]| {
        run(Command::new(program).args(first).args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update", "-qq"])?;
    apt(&["install", "-y", "-qq", "--no-install-recommends", "chromium"])?;
    find().map(|_| ())
}
