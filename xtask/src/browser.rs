//! Checks the reports in a real browser without a window. The report of every built-in study, and the page
//! that `--report` writes for some commands, is rendered
//! 420, 900 and 1400 pixels wide with light colours, and one report also with dark colours.
//!
//! A page passes if all of its plots are drawn and contain marks, nothing was written to the console, and
//! `probe.js` finds no problem. No text in a plot may be clipped or overlap another text or a bar. Every text
//! must have a contrast of 4.5 to its background. Two marks in a plot must not have similar colours, except
//! for bars without a legend. The page must not be wider than its window. The buttons under the plots must
//! give a valid SVG and PNG. Every conclusion that a report checks must name an injected fault that makes its
//! check fail. The screenshots, and the SVG and the PNG of one plot of each report, are left in
//! `target/reports` for inspection.

use crate::{build, packages, root, run};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

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
    "myflashsql",
    "real-drives",
];
/// Commands whose pages are checked too, each with a name for its folder.
const PAGES: &[(&str, &str)] = &[
    ("pool", "pool mixed-skewed --write-back single,ace,raw --ops 20K"),
    ("pool-users", "pool mixed-skewed --write-back single,ace --users 1,4,16,64 --ops 20K"),
    ("pool-grid", "pool mixed-skewed,zipf --write-back single,ace --replacement lru,clock --ops 20K"),
    ("pool-curve", "pool postgres-pgbench --device none --replacement lru,s3-fifo,belady --curve"),
    (
        "pool-heat",
        "pool mixed-skewed --pages 20K --ops 60K --device none --curve --sample 1/4 --replacement \
         fifo,second-chance,clock,nru,lfu,lru,2q,arc,cflru,lru-wsr,s3-fifo,sieve,w-tinylfu",
    ),
    (
        "pool-band",
        "pool mixed-skewed --pages 20K --ops 60K --device none --curve --sample 1/4 --replacement lru,arc",
    ),
    (
        "gc",
        "gc zipf --placement none,sepbit --victim greedy,fifo --logical 64MiB --physical 80MiB --segment 256KiB",
    ),
    (
        "gc-intervals",
        "gc zipf --placement none,sepbit --logical 64MiB --physical 80MiB --segment 256KiB --interval 9K",
    ),
    ("trace", TRACE),
    ("replay", "replay synthetic --ops 20K"),
    ("replay-intervals", "replay synthetic --ops 20K --interval 100ms"),
    ("bench", "bench ycsb-a --ops 2K --users 1,16 --durability flush,group,relaxed"),
    ("profile", "profile p4510,sata --page 4KiB,8KiB"),
    ("profile-curve", "profile p4510,sata --curve"),
    ("advise", "advise mixed-skewed --memory 1MiB --pages 4000 --ops 5K"),
    (
        "which-drive",
        "advise financial-like --ops 5K --device sata:blocks=20,pages=64,p4510:blocks=16,pages=32 --require p99=400us",
    ),
];
/// The description of a trace. The word `TRACE` stands for a file that is made first.
const TRACE: &str = "trace info TRACE";

/// The widths of the windows in pixels: a phone, a tablet, a desktop.
pub(crate) const WIDTHS: &[u32] = &[420, 900, 1400];
/// The width in pixels of the frame in which the buttons are clicked.
const FILES_AT: u32 = 1400;
const PROBE: &str = include_str!("probe.js");

/// Runs all built-in studies with their `quick` settings and checks their reports.
pub(crate) fn check() -> Result<()> {
    packages::installed()?;
    let browser = packages::browser()?;
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
        let page = fs::read_to_string(out.join("report.html"))?;
        let of_study = || format!("report of {study}");
        no_check_is_vacuous(&page).with_context(of_study)?;
        look(&browser, &out, &page, WIDTHS, "light").with_context(of_study)?;
        println!("{study}: nothing to complain about; {}", out.display());
    }
    let trace = reports.join("trace.spc");
    run(Command::new(&command)
        .args(["trace", "generate", "financial-like", "--to", "spc", "--ops", "20K", "--force", "--quiet"])
        .arg(&trace)
        .stdout(Stdio::null()))?;
    for (name, arguments) in PAGES {
        let out = reports.join(format!("page-{name}"));
        fs::create_dir_all(&out)?;
        let file = out.join("report.html");
        run(Command::new(&command)
            .args(
                arguments
                    .split(' ')
                    .map(|word| if word == "TRACE" { trace.as_os_str() } else { word.as_ref() }),
            )
            .args(["--quiet", "--report"])
            .arg(&file)
            .stdout(Stdio::null()))?;
        look(&browser, &out, &fs::read_to_string(&file)?, WIDTHS, "light")
            .with_context(|| format!("page of {arguments}"))?;
        println!("{arguments}: nothing to complain about; {}", out.display());
    }
    let out = reports.join(STUDIES[0]);
    let page = fs::read_to_string(out.join("report.html"))?;
    look(&browser, &out, &page, &[900], "dark").context("a browser that prefers dark pages")?;
    broken_pages_are_detected(&browser, &out, &page, BREAKS)?;
    let out = reports.join("raw");
    let page = fs::read_to_string(out.join("report.html"))?;
    broken_pages_are_detected(&browser, &out, &page, BREAKS_OF_COLOURS)
}

/// Fails if the report says that no injected fault makes a check fail. Every run of a study injects faults
/// into its rows.
fn no_check_is_vacuous(page: &str) -> Result<()> {
    for item in page.split("<li class=\"").skip(1).filter_map(|item| item.split("</li>").next()) {
        ensure!(!item.contains("class=\"vacuous\""), "a check proves nothing: {item}");
    }
    let (checks, noticed) = (page.matches("class=\"sign\"").count(), page.matches("class=\"fault\"").count());
    ensure!(checks == noticed, "{noticed} of {checks} checks name a fault that they detect");
    Ok(())
}

/// The changes that break a page: a text on the page, its replacement, and the expected message.
const BREAKS: &[(&str, &str, &str)] = &[
    ("? drawBars(svg,", "? absent(svg,", "console is not empty"),
    ("\"use strict\";", "console.log('a word');", "console is not empty"),
    ("place.replaceChildren(", "void (", "a plot is empty"),
    ("layout.names - 8, middle", "layout.names - 60, middle", "is clipped"),
    ("    x += wide + 16;", "    x += 20;", "overlaps \""),
    ("end + (isLeft ? -5 : 5), middle", "end - (isLeft ? -30 : 30), middle", "overlaps a bar"),
    // Gives a secondary text too little contrast, on the page and in a plot.
    ("--quiet: #5c6670;", "--quiet: #98a2ac;", "has a contrast of"),
    ("fill: theme.ink,\n      anchor: isLeft", "fill: theme.line,\n      anchor: isLeft", "plot 0: \""),
    (".scroll { overflow-x: auto; }", "", "the page is"),
    ("new XMLSerializer().serializeToString(svg)", "\"<svg>\"", "the SVG is broken"),
    ("toDataURL(\"image/png\")", "toDataURL(\"image/jpeg\")", "the PNG is invalid"),
];

/// The changes that give adjacent marks similar colours. The report of `raw` has many adjacent marks. The
/// changes make every second bar grey, give two options of one policy one colour, and give two policies one
/// colour.
const BREAKS_OF_COLOURS: &[(&str, &str, &str)] = &[
    ("if (!bases.every((base) => hues.includes(base)))", "if (bases.indexOf(key) % 2)", "look alike"),
    ("if (at < 0) return hue;", "return hue;", "look alike"),
    ("[hues.indexOf(base)]", "[Math.max(1, hues.indexOf(base))]", "look alike"),
];

/// Tests the check itself, which must report each broken page with the expected message.
fn broken_pages_are_detected(
    browser: &Path,
    folder: &Path,
    page: &str,
    breaks: &[(&str, &str, &str)],
) -> Result<()> {
    let broken = folder.join("broken");
    fs::create_dir_all(&broken)?;
    for (from, to, complaint) in breaks {
        let (before, after) = page.split_once(from).with_context(|| format!("{from} is not in the page"))?;
        let verdict = look(browser, &broken, &format!("{before}{to}{after}"), &[420, FILES_AT], "light");
        let verdict = verdict.map_err(|error| format!("{error:#}"));
        ensure!(
            verdict.as_ref().is_err_and(|error| error.contains(complaint)),
            "a page with {to} for {from} was found to be {verdict:?}"
        );
    }
    fs::remove_dir_all(&broken)?;
    println!("{} broken pages were detected", breaks.len());
    Ok(())
}

/// The result of `probe.js` for one frame.
#[derive(serde::Deserialize)]
struct Told {
    plots: String,
    ready: String,
    /// The theme with which the page started, which is `light` or `dark`.
    first: String,
    problems: Vec<String>,
    made: Option<Made>,
}

/// The files that the buttons gave, in hexadecimal digits.
#[derive(serde::Deserialize)]
struct Made {
    svg: String,
    png: String,
}

/// Renders `page` in one frame per width and fails if there is any problem. The browser prefers `theme`.
pub(crate) fn look(browser: &Path, folder: &Path, page: &str, widths: &[u32], theme: &str) -> Result<()> {
    let checked = folder.join("checked.html");
    let probe = PROBE.replace("FILES_AT", &FILES_AT.to_string());
    fs::write(&checked, page.replace("</body>", &format!("<script>{probe}</script></body>")))?;
    let around = folder.join("frames.html");
    fs::write(&around, frames(widths))?;
    let screenshot = folder.join(format!("{theme}.png"));
    let window = widths.iter().sum::<u32>() + 60;
    let dumped = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"])
        .args(["--virtual-time-budget=20000", &format!("--window-size={window},2400"), "--dump-dom"])
        .arg(format!("--screenshot={}", screenshot.display()))
        .arg(format!("--blink-settings=preferredColorScheme={}", u8::from(theme == "light")))
        .arg(format!("file://{}", around.display()))
        .output()
        .context("the browser cannot be started")?;
    let log = String::from_utf8_lossy(&dumped.stderr);
    let said: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    ensure!(said.is_empty(), "the console is not empty:\n{}", said.join("\n"));
    let dom = String::from_utf8_lossy(&dumped.stdout);
    let told = dom.split("<pre>").skip(1).filter_map(|part| part.split("</pre>").next());
    // The browser escapes text in its dump as markup, so the escapes are reverted.
    let told = told.map(|text| text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"));
    let told: Vec<Told> = told
        .map(|text| serde_json::from_str(&text))
        .collect::<Result<_, _>>()
        .context("what the probe tells")?;
    ensure!(told.len() == widths.len(), "{} of {} frames were looked at", told.len(), widths.len());
    for told in &told {
        ensure!(
            told.plots == told.ready && told.plots != "0",
            "{} of {} plots were drawn",
            told.ready,
            told.plots
        );
        ensure!(told.problems.is_empty(), "{}", told.problems.join("\n"));
        ensure!(told.first == theme, "the page came up {}", told.first);
    }
    if widths.contains(&FILES_AT) && page.contains("class=\"save\"") {
        let Some(made) = told.iter().find_map(|told| told.made.as_ref()) else { bail!("no files were made") };
        for (name, content) in [("plot.svg", &made.svg), ("plot.png", &made.png)] {
            fs::write(folder.join(name), bytes(content)?)?;
        }
    }
    fs::remove_file(&checked)?;
    fs::remove_file(&around)?;
    Ok(())
}

/// Decodes hexadecimal digits.
fn bytes(digits: &str) -> Result<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?)).collect()
}

/// Returns a page with one frame per width. A script writes the results of the probes in the frames into this
/// page.
fn frames(widths: &[u32]) -> String {
    let frame =
        |width: &u32| format!("<iframe src=\"checked.html\" width=\"{width}\" height=\"2200\"></iframe>");
    let frames: String = widths.iter().map(frame).collect();
    format!(
        "<!doctype html><meta charset=\"utf-8\"><style>iframe {{ border: 0 }} pre {{ display: none }}</style><script>\
         addEventListener('message', ({{ data }}) => {{ const told = document.createElement('pre'); \
         told.textContent = JSON.stringify(data); document.body.append(told); }});</script><body>{frames}</body>"
    )
}
