//! Tests of all generated workloads.

use super::config::GeneratorConfig;
use super::generator::Generator;
use crate::{Op, Request};
use fulgurite_base::{Registry, SpecError};

fn make(spec: &str, pages: u64, seed: u64) -> Result<Generator, SpecError> {
    spec.parse::<GeneratorConfig>()?.start(pages, 4096, seed)
}

fn sentence(spec: &str, pages: u64) -> String {
    make(spec, pages, 42).unwrap_err().to_string()
}

#[test]
fn the_first_requests_are_pinned() {
    // These are golden requests: a change of them would change every recorded result.
    let golden = [
        ("mixed-skewed", "W49475 R96292 W38451 W76456 R69970 R46150 W67240 R67121"),
        ("write-intensive", "W49475 W96292 W38451 W76456 W69970 W46150 W67240 W67121"),
        ("read-intensive", "R49475 R96292 R38451 W76456 R69970 R46150 R67240 R67121"),
        ("mixed-uniform", "W494755 R962931 W384511 W764566 R699708 R461501 W672403 R671214"),
        ("zipf", "W482936 W778625 W798367 R832798 R992483 R116620 R472134 W180332"),
        (
            "financial-like",
            "W962931 W962932@32243169 W667290+3@67024344 W679639+2@86332586 W679641+2@99432723 \
             W910371+2@167728148 W20140+4@209887716 W175637@222205720",
        ),
        ("zipf:theta=1.5", "W854102 W180332 W798367 R832798 R618035 R854102 R236067 W472134"),
    ];
    for (spec, expected) in golden {
        let first: Vec<String> = make(spec, 1_000_003, 42)
            .unwrap()
            .take(8)
            .map(|request| {
                let op = if request.op == Op::Read { 'R' } else { 'W' };
                let at = if request.at.0 > 0 { format!("@{}", request.at.0) } else { String::new() };
                let pages = if request.pages > 1 { format!("+{}", request.pages) } else { String::new() };
                format!("{op}{}{pages}{at}", request.page)
            })
            .collect();
        assert_eq!(first.join(" "), expected, "{spec}");
    }
}

#[test]
fn every_name_makes_endless_requests_in_range() {
    let own = GeneratorConfig::registry().names().filter(|name| *name != "switch");
    for name in own.chain(["switch:zipf,ycsb-d@100", "ycsb-a:blocks=yes", "tpcc:blocks=yes,dirty=1%"]) {
        let is_of_blocks =
            ["varmail", "blocks", "journaling", "log-structured", "copy-on-write", "append-only"];
        let is_of_tables = name.contains("lsm-like");
        let pages = if is_of_tables {
            64_001
        } else if is_of_blocks.iter().any(|part| name.contains(part)) {
            14_217
        } else {
            217
        };
        let generator = make(name, pages, 7).unwrap();
        let is_timed = generator.is_timed();
        let mut before = fulgurite_base::Nanos::ZERO;
        for request in generator.take(20_000) {
            let end = request.page + u64::from(request.pages);
            assert!(request.pages > 0 && end <= pages, "{}: {request:?}", name);
            assert!(request.at >= before && (is_timed || request.pages == 1), "{}: {request:?}", name);
            before = request.at;
        }
        assert_eq!(before > fulgurite_base::Nanos::ZERO, is_timed);
    }
}

#[test]
fn transactions_read_and_write_as_specified() {
    let writes = |spec: &str| {
        let requests = make(spec, 100_000, 3).unwrap().take(200_000);
        requests.filter(|request| request.op == Op::Write).count() as f64 / 200_000.0
    };
    // Every access to a row reads an index page, so writes are at most half of the accesses.
    assert_eq!(writes("tpcc:transaction=order-status") + writes("tpcc:transaction=stock-level"), 0.0);
    assert_eq!(writes("tpcc:transaction=delivery"), 0.5);
    // An order has ten lines on average. Each line reads the item's row and writes two rows. Five more rows
    // are accessed, three of them written.
    assert!((writes("tpcc:transaction=new-order") - 23.0 / 70.0).abs() < 0.003);
    assert_eq!((writes("sysbench-read-only"), writes("sysbench-write-only")), (0.0, 0.5));
    assert!(writes("sysbench-read-write") < 0.15 && writes("linkbench") > 0.1);
    // Payments write the customers of all districts, so the written pages are many.
    let distinct = |spec: &str| {
        let written: std::collections::BTreeSet<u64> = make(spec, 100_000, 3)
            .unwrap()
            .take(200_000)
            .filter(|request| request.op == Op::Write)
            .map(|request| request.page)
            .collect();
        written.len()
    };
    assert!(distinct("tpcc:transaction=payment") > 1_000);
}

#[test]
fn an_engine_writes_each_dirty_page_once_in_a_while() {
    // A 64th of the 100,000 pages is the log, 512 pages are the doublewrite buffer, and the others are the
    // data.
    let requests: Vec<Request> = make("ycsb-a:blocks=yes", 100_000, 3).unwrap().take(300_000).collect();
    assert!(requests.iter().all(|request| request.op == Op::Write));
    let part = |from: u64, to: u64| {
        requests.iter().filter(|request| (from..to).contains(&request.page)).count() as f64 / 300_000.0
    };
    let (log, doublewrite, data) = (part(0, 1_562), part(1_562, 2_074), part(2_074, 100_000));
    assert!(log > 0.01 && log < 0.2 && (doublewrite - data).abs() < 0.001, "{log} {doublewrite} {data}");
    // A page of the engine has 16 KiB, so data are written in units of four device pages.
    let first = requests.iter().position(|request| request.page >= 2_074).unwrap();
    let unit: Vec<u64> = requests[first..first + 4].iter().map(|request| request.page).collect();
    assert!(unit.windows(2).all(|two| two[1] == two[0] + 1) && (unit[0] - 2_074).is_multiple_of(4));
}

#[test]
fn a_switch_is_one_workload_and_then_the_other() {
    let take = |spec: &str, n: usize| make(spec, 1_000, 3).unwrap().take(n).collect::<Vec<_>>();
    let mut expected = take("zipf:theta=1.2,write=5%", 50);
    expected.extend(take("varmail", 70));
    assert_eq!(take("switch:zipf:theta=1.2,write=5%,varmail@50", 120), expected);
    assert!(sentence("switch:zipf@50", 1_000).contains("switch:ycsb-a,tpcc@1.1G"));
    assert!(sentence("switch:zipf,financial-like@50", 1_000).contains("have times"));
}

#[test]
fn hints_name_the_class() {
    for request in make("mixed-skewed:hints=yes", 1000, 1).unwrap().take(1_000) {
        assert_eq!(request.stream, u16::from(request.page < 100));
    }
    assert!(make("mixed-skewed", 1000, 1).unwrap().take(1_000).all(|request| request.stream == 0));
    assert!(sentence("mixed-skewed:hints=maybe", 1000).contains("neither yes nor no"));
}

#[test]
fn a_default_written_out_changes_no_text_and_another_value_does() {
    let Registry { kind, entries } = GeneratorConfig::registry();
    // `switch` needs two workloads, so it has no text without options and is left out.
    let at = entries.iter().position(|entry| entry.name == "switch").unwrap();
    for entries in [&entries[..at], &entries[at + 1..]] {
        Registry { kind, entries }.check_texts().unwrap();
    }
    let text = |text: &str| text.parse::<GeneratorConfig>().unwrap().to_string();
    assert_eq!(text("zipf:theta=1.0,write=50.0%"), "zipf:theta=1");
    assert_eq!(
        text("switch:zipf:theta=0.99,write=5%,ycsb-d:blocks=no@1K"),
        "switch:zipf:write=5%,ycsb-d@1000"
    );
    assert_eq!(text(&text("switch:zipf:write=5%,varmail@1K")), "switch:zipf:write=5%,varmail@1000");
}

#[test]
fn writes_anything_and_keeps_writing_agree_with_the_requests() {
    let own = GeneratorConfig::registry().names().filter(|name| *name != "switch");
    let others = [
        "read-intensive:write=0%",
        "mixed-uniform:write=0%",
        "zipf:write=0%",
        "zipf:write=100%",
        "synthetic:read=100%",
        "synthetic:read=99%",
        "tpcc:transaction=order-status",
        "tpcc:transaction=stock-level",
        "tpcc:transaction=payment",
        "ycsb-b:blocks=yes",
        "switch:ycsb-c,zipf:write=0%@9",
        "switch:ycsb-c,zipf@9",
        "switch:zipf,ycsb-c@9",
        "switch:zipf,ycsb-c@0",
    ];
    for text in own.chain(others) {
        let config: GeneratorConfig = text.parse().unwrap();
        // Tables of several levels need more room than the others.
        let pages = if text == "lsm-like" { 64_000 } else { 5_000 };
        let mut generator = config.start(pages, 4096, 5).unwrap();
        let mut writes = || generator.by_ref().take(50_000).filter(|request| request.op != Op::Read).count();
        assert_eq!(config.writes_anything(), writes() > 0, "{text}");
        assert_eq!(config.keeps_writing(), writes() > 0, "{text}");
        assert_eq!(config.is_timed(), config.start(pages, 4096, 5).unwrap().is_timed(), "{text}");
    }
    // The workload is refused, because a caller would wait for the engine's first write for ever.
    assert!(sentence("tpcc:transaction=order-status,blocks=yes", 100_000).contains("accepted: blocks=no"));
}

#[test]
fn uniform_is_recognised() {
    let uniform = |spec: &str| spec.parse::<GeneratorConfig>().unwrap().is_uniform_random();
    assert!(uniform("mixed-uniform") && uniform("zipf:theta=0") && uniform("fio-u"));
    assert!(uniform("mixed-skewed:hot_pages=30%,hot_requests=30%"));
    assert!(!uniform("mixed-skewed") && !uniform("zipf") && !uniform("zipf:theta=0.001"));
}

#[test]
fn impossible_workloads_are_refused() {
    assert!(sentence("zpif", 10).starts_with("unknown workload `zpif`; did you mean `zipf`?"));
    assert_eq!(
        sentence("mixed-uniform", 0),
        "pages=0 of mixed-uniform is out of range; it must be from 1 to 281474976710656"
    );
    assert!(sentence("zipf", u64::MAX).contains("is out of range"));
    assert!(sentence("mixed-uniform:hot_pages=10%", 10).contains("unknown option of mixed-uniform"));
    assert_eq!(sentence("zipf:write=101%", 10), "write=101% of zipf is out of range; accepted: 0% to 100%");
}
