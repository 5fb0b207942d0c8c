//! Draws the picture that explains alpha and k, from a run of `fulgurite profile p4510 --curve`.
//!
//! Alpha is the most reads per second over the most writes per second. k is the least number of users that
//! reach 95 % of the most requests per second.

use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The path of the picture in the book.
pub(crate) const PLACE: &str = "explanation/alpha-and-k.svg";

/// The bounds of the plot area, in the units of the picture.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 600.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 340.0;
/// The ends of the axes: 8 doublings of one user are 256 users, and 500 thousand requests per second.
const DOUBLINGS: f64 = 8.0;
const MOST: f64 = 500.0;

/// The measured curve of reads or of writes.
struct Curve {
    name: &'static str,
    /// The points of the curve: a number of users, and thousands of requests per second.
    points: Vec<(f64, f64)>,
    k: f64,
    most: f64,
}

/// Draws the picture with the figures that the program `fulgurite` measures.
pub(crate) fn draw(fulgurite: &Path) -> Result<String> {
    let figures = table(fulgurite, &["profile", "p4510", "--csv"])?;
    let curve = table(fulgurite, &["profile", "p4510", "--curve", "--csv"])?;
    let read = Curve::read("reads", &curve, "read_iops", &figures, ["k_r", "read_iops_max"])?;
    let write = Curve::read("writes", &curve, "write_iops", &figures, ["k_w", "write_iops_max"])?;
    let alpha = number(&figures, "alpha", 0).context("no alpha")?;
    Ok(picture(&read, &write, alpha))
}

/// Runs `fulgurite` and returns the lines of its CSV table as cells. The first line is the header.
fn table(fulgurite: &Path, arguments: &[&str]) -> Result<Vec<Vec<String>>> {
    let output = Command::new(fulgurite).args(arguments).output().context("the command cannot be started")?;
    ensure!(output.status.success(), "fulgurite {} failed", arguments.join(" "));
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect())
}

/// Returns the number in a row under a heading, if there is one.
fn number(table: &[Vec<String>], name: &str, row: usize) -> Option<f64> {
    let column = table.first()?.iter().position(|head| head == name)?;
    table.get(row + 1)?.get(column)?.parse().ok()
}

impl Curve {
    fn read(
        name: &'static str,
        curve: &[Vec<String>],
        column: &str,
        figures: &[Vec<String>],
        [k, most]: [&str; 2],
    ) -> Result<Curve> {
        let point = |row| Some((number(curve, "users", row)?, number(curve, column, row)? / 1000.0));
        let points: Vec<(f64, f64)> = (0..curve.len()).filter_map(point).collect();
        ensure!(points.len() > 8, "the curve of {name} has {} points", points.len());
        let k = number(figures, k, 0).with_context(|| format!("no {k}"))?;
        let most = number(figures, most, 0).with_context(|| format!("no {most}"))? / 1000.0;
        Ok(Curve { name, points, k, most })
    }

    /// Draws the line of the curve, its points, the mark of its k, and its labels.
    fn draw(&self, svg: &mut String) {
        let Curve { name, points, k, most } = self;
        let places: Vec<String> =
            points.iter().map(|(users, rate)| format!("{:.1},{:.1}", x(*users), y(*rate))).collect();
        let _ = writeln!(svg, "<g class=\"{name}\">\n<polyline points=\"{}\"/>", places.join(" "));
        for (users, rate) in points {
            let _ = writeln!(svg, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"/>", x(*users), y(*rate));
        }
        let (at, height, letter) = (x(*k), y(0.95 * most), &name[..1]);
        let _ = writeln!(svg, "<path class=\"mark\" d=\"M{at:.1} {BOTTOM}V{height:.1}\"/>");
        let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{}\">k_{letter} = {k}</text>", at + 6.0, BOTTOM - 8.0);
        let (end, above) = (RIGHT + 8.0, y(*most) + 4.0);
        let _ = writeln!(svg, "<text x=\"{end}\" y=\"{above:.1}\">{name}: {most:.0} K/s</text>\n</g>");
    }
}

fn x(users: f64) -> f64 {
    LEFT + users.log2() / DOUBLINGS * (RIGHT - LEFT)
}

fn y(rate: f64) -> f64 {
    BOTTOM - rate / MOST * (BOTTOM - TOP)
}

const STYLE: &str = ".paper{fill:#fff}text{font:13px sans-serif;fill:#333}.axis{stroke:#999;fill:none}\
    .grid{stroke:#ddd}polyline{fill:none;stroke-width:2.5}.mark{stroke-dasharray:4 3}\
    .reads{--line:#0072b2}.writes{--line:#d55e00}\
    .reads *,.writes *{stroke:var(--line)}.reads circle,.writes circle{fill:var(--line)}\
    .reads text,.writes text{fill:var(--line);stroke:none;font-weight:bold}\
    @media(prefers-color-scheme:dark){.paper{fill:#161b22}text{fill:#ddd}.grid{stroke:#444}\
    .reads{--line:#4aa3df}.writes{--line:#ff9e4a}}";

fn picture(read: &Curve, write: &Curve, alpha: f64) -> String {
    let mut svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 740 400\" role=\"img\">\n\
        <title>Throughput of a simulated P4510 by the number of users</title>\n"
        .to_owned();
    let _ = writeln!(svg, "<style>{STYLE}</style>\n<rect class=\"paper\" width=\"740\" height=\"400\"/>");
    for rate in [100.0, 200.0, 300.0, 400.0, 500.0] {
        let at = y(rate);
        let _ = writeln!(svg, "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{RIGHT}\"/>");
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{rate:.0}</text>",
            LEFT - 8.0,
            at + 4.0
        );
    }
    for doubling in 0..=8 {
        let users = 1 << doubling;
        let (at, below) = (x(f64::from(users)), BOTTOM + 18.0);
        let _ = writeln!(svg, "<text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"middle\">{users}</text>");
    }
    let _ = writeln!(svg, "<path class=\"axis\" d=\"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}\"/>");
    let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"22\">thousand requests per second</text>");
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"385\" text-anchor=\"middle\">users at once</text>",
        (LEFT + RIGHT) / 2.0
    );
    write.draw(&mut svg);
    read.draw(&mut svg);
    // Draws a bracket between the two plateaus.
    let (at, high, low) = (RIGHT + 20.0, y(read.most) + 14.0, y(write.most) - 14.0);
    let middle = (high + low) / 2.0;
    let _ = writeln!(
        svg,
        "<path class=\"axis\" d=\"M{at} {high:.1}V{:.1}M{at} {:.1}V{low:.1}\"/>",
        middle - 14.0,
        middle + 10.0
    );
    let _ = writeln!(svg, "<text x=\"{}\" y=\"{middle:.1}\">alpha = {alpha:.2}</text>\n</svg>", RIGHT + 8.0);
    svg
}
