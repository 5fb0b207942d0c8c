//! Tests pieces of traces, and traces whose addresses are hidden (`trace convert`).

use crate::folder::{Folder, number};

const TRACE: &str = "0,8,4096,R,10.0\n1,16,4096,W,11.0\n2,24,8192,R,70.5\n0,8,4096,R,130.0\n";

fn lines(folder: &Folder, options: &str) -> Vec<String> {
    let outcome = folder.run(&format!("trace convert t.spc - --to spc {options}"));
    assert_eq!(outcome.code, 0, "{options}: {}", outcome.stderr);
    outcome.stdout.lines().map(str::to_owned).collect()
}

/// The rule: a cut has the requests from its beginning on and before its end, and begins at time zero; and those of
/// a volume alone, whatever option of the format names it.
#[test]
fn a_piece_of_a_trace_is_cut_out() {
    let folder = Folder::new().with("t.spc", TRACE);
    assert_eq!(
        lines(&folder, "--from 1s --until 2m"),
        ["1,16,4096,W,0.000000000", "2,24,8192,R,59.500000000"]
    );
    assert_eq!(lines(&folder, "--until 61s").len(), 3);
    assert_eq!(lines(&folder, "--from 1m").len(), 2);
    let volume = lines(&folder, "--volume 0");
    assert_eq!(volume, ["0,8,4096,R,0.000000000", "0,8,4096,R,120.000000000"]);
    assert_eq!(lines(&folder, "--format spc:volume=0"), volume);
}

/// The rule: a sample has all requests for some pages, and the same pages for the same seed.
#[test]
fn a_sample_of_the_pages_is_cut_out() {
    let text: String = (0..4_000u64).map(|at| format!("0,{},4096,R,{at}.0\n", at % 1_009 * 8)).collect();
    let folder = Folder::new().with("t.spc", text);
    let one = lines(&folder, "--sample 1/4");
    assert!((800..1_200).contains(&one.len()), "{}", one.len());
    assert_eq!(lines(&folder, "--sample 1/4 --seed 42"), one);
    assert_ne!(lines(&folder, "--sample 1/4 --seed 43"), one);
    assert_eq!(lines(&folder, "--sample 1").len(), 4_000);
    // A page has two sectors of 4 KiB here, so pairs of neighbours are in the sample together.
    let large = lines(&folder, "--sample 1/4 --page 8KiB");
    let sector = |line: &String| line.split(',').nth(1).unwrap().parse::<u64>().unwrap();
    let pages: std::collections::BTreeSet<u64> = large.iter().map(|line| sector(line) / 16).collect();
    let halves: std::collections::BTreeSet<u64> = large.iter().map(sector).collect();
    assert!(halves.len() > pages.len() * 14 / 10, "{} of {}", halves.len(), pages.len());
}

/// The rule: hidden addresses keep every hit and miss, times, lengths and operations; they hide addresses and names
/// of volumes; and another seed hides them otherwise.
#[test]
fn hidden_addresses_keep_the_hits() {
    let row = |at: u64| {
        let op = if at.is_multiple_of(3) { "Write" } else { "Read" };
        format!(
            "{},secret,{},{op},{},4096,0\n",
            128_166_372_000_000_000 + at * 10_000,
            at % 2,
            at * at % 2_003 * 4096
        )
    };
    let folder = Folder::new().with("t.msr", (0..3_000).map(row).collect::<String>());
    let hide = |seed: &str, out: &str| {
        let outcome = folder.run(&format!("trace convert t.msr {out} --to msr --anonymise --seed {seed}"));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        String::from_utf8(folder.read(out)).unwrap()
    };
    let (hidden, other) = (hide("4711", "h.msr"), hide("4712", "o.msr"));
    assert!(!hidden.contains("secret") && hidden != other);
    let column = |text: &str, at: usize| -> Vec<String> {
        text.lines().map(|line| line.split(',').nth(at).unwrap().to_owned()).collect()
    };
    let plain = String::from_utf8(folder.read("t.msr")).unwrap();
    for kept in [3, 5] {
        assert_eq!(column(&hidden, kept), column(&plain, kept));
    }
    let same = column(&hidden, 4).iter().zip(column(&plain, 4)).filter(|(a, b)| **a == *b).count();
    assert!(same < 100, "{same} of 3,000 addresses are those of before");
    let figures = |file: &str| {
        let rows =
            folder.rows(&format!("pool {file} --device none --replacement lru,arc,sieve --frames 50,500"));
        let info = &folder.rows(&format!("trace info {file}"))[0];
        let misses: Vec<f64> = rows.iter().map(|row| number(row, "misses")).collect();
        (misses, ["requests", "duration_ns", "footprint_pages", "volumes"].map(|column| number(info, column)))
    };
    assert_eq!(figures("h.msr"), figures("t.msr"));
}

/// The rule: a cut without a request, and one that says nothing, is refused, and no file appears.
#[test]
fn a_cut_without_a_request_is_refused() {
    let folder = Folder::new().with("t.spc", TRACE);
    for (options, words) in [
        ("--from 1h", "t.spc has no request with --from 1h"),
        ("--volume sdb", "its volumes are 0 1 2"),
        ("--from 2m --until 1m", "--until 1m is not after --from 2m"),
        ("--from 10", "--from: `10` is not a length of time"),
        ("--sample 2", "--sample: `2` is not a share of the pages"),
        ("--anonymise", "--anonymise needs a seed that nobody can guess"),
        ("--page 8KiB", "--page has no effect from spc to spc"),
    ] {
        let outcome = folder.run(&format!("trace convert t.spc out.spc --to spc {options}"));
        assert_eq!(outcome.code, 2, "{options}");
        assert!(outcome.stderr.contains(words), "{options}: {}", outcome.stderr);
        assert_eq!(folder.names(), ["t.spc"], "{options}");
    }
}
