//! Tests a pool before a served drive.

use super::client::TRIM;
use super::drive::Served;

/// A small drive with a protected cache, behind a pool.
const POOLED: &str =
    "sata:blocks=20,pages=8,channels=2 --frames 64 --write-back ace:n_w=4 --speed max --json";

/// The rule: a write stays in the pool, where a power cut may lose it, until a flush or a durable write. The drive gets
/// a page once, however often it was written, and never if it was trimmed.
#[test]
fn a_write_stays_in_the_pool_until_a_flush() {
    let served = Served::new(POOLED);
    let mut client = served.client();
    let written = || {
        let stats = served.told("stats");
        (stats["host_pages_written"].as_u64().unwrap(), stats["write_ios"].as_u64().unwrap())
    };
    for value in 1..=10 {
        client.write(0, &[value; 40_960]).unwrap();
    }
    assert_eq!(written(), (0, 0));
    assert_eq!(client.read(36_864, 4_096).unwrap(), [10; 4_096]);
    let cut = served.told("power-cut --seed 3");
    assert_eq!(cut["pages_unflushed"], 10, "{cut}");
    assert_eq!(written(), (0, 0), "the pool has forgotten them");
    for value in 1..=10 {
        client = served.client();
        client.write(0, &[value; 40_960]).unwrap();
    }
    client.flush();
    assert_eq!(written(), (10, 0));
    assert_eq!(served.told("power-cut")["pages_unflushed"], 0);
    let durable = served.qemu_io("write -f -P 7 81920 4k");
    assert_eq!((durable.code, written()), (0, (11, 0)));
    client = served.client();
    client.write(86_016, &[8; 8_192]).unwrap();
    client.send(TRIM, 86_016, 4_096, &[]);
    client.answer(0).unwrap().unwrap();
    client.flush();
    assert_eq!(written(), (12, 0));
    let row = served.row();
    assert_eq!(
        (&row["frames"], &row["replacement"], &row["write_back"]),
        (&64.into(), &"lru".into(), &"ace:n_w=4".into())
    );
    assert!(row["hit_ratio"].as_f64().unwrap() > 0.8, "{row}");
}

/// The rule: more dirty pages than frames go to the drive in batches, and a miss costs what the drive takes.
#[test]
fn a_full_pool_writes_back_in_batches() {
    let served = Served::new(POOLED);
    let mut client = served.client();
    for page in 0..200 {
        client.write(page * 4_096, &[page as u8; 4_096]).unwrap();
    }
    for page in (0..200).rev() {
        assert_eq!(client.read(page * 4_096, 4_096).unwrap(), [page as u8; 4_096]);
    }
    let row = served.row();
    let of = |name: &str| row[name].as_f64().unwrap();
    // The last 64 pages were in the pool when the reads began.
    assert_eq!((of("hits"), of("misses"), of("pages_read")), (64.0, 336.0, 136.0));
    assert_eq!((of("pages_written") + of("pages_flushed"), of("host_pages_written")), (200.0, 200.0));
    assert_eq!(of("pages_written"), 4.0 * of("write_ios"));
    assert!(
        of("read_latency_p50_ns") > 10_000.0 && of("read_latency_p50_ns") > of("write_latency_p50_ns"),
        "{row}"
    );
}

/// The rule: a pool loses what was not flushed, so it cannot have protected power, and policies need a pool.
#[test]
fn what_a_pool_cannot_be_is_refused() {
    for (arguments, words) in [
        ("mem --frames 10 --power protected", "--power protected does not go with --frames 10"),
        ("mem --frames 0", "at least one frame"),
        ("mem --frames 10 --replacement belady", "nobody knows those of other programs"),
        ("mem --write-back ace", "--frames beside it"),
    ] {
        let outcome = crate::folder::Folder::new().run(&format!("serve {arguments} --nbd unix:s"));
        assert_eq!((outcome.code, outcome.stderr.lines().count()), (2, 1), "{arguments}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(words), "{arguments}: {}", outcome.stderr);
    }
}
