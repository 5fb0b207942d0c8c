//! Tests protection against torn pages by the SHARE command: a batch takes as few commands as the limit of
//! the drive allows, and no page is split between two of them.

use crate::common::{fill, options, run};
use fulgurite_base::{Lpn, Nanos};
use fulgurite_device::{
    Caps, Command, Completion, Device, Executor, MemDevice, Operation, QueueFull, ShareRun,
};
use fulgurite_engine::{Error, Options, Store, TornPages};

/// A drive with pages of 4 KiB that shares a limited number of pages per command, tears every write, and
/// records the share commands.
struct Limited {
    inner: MemDevice,
    caps: Caps,
    shares: Vec<Box<[ShareRun]>>,
}

impl Limited {
    fn new(share_pages: u32) -> Limited {
        let inner = MemDevice::new(8192, 4096, 64, Nanos::from_micros(10));
        let caps = Caps { share_pages, atomic_bytes: 0, ..inner.caps().clone() };
        Limited { inner, caps, shares: Vec::new() }
    }
}

impl Device for Limited {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        assert_eq!(command.operation.fault(&self.caps), None, "{:?}", command.operation);
        if let Operation::Share { runs } = &command.operation {
            self.shares.push(runs.clone());
        }
        self.inner.submit(command)
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        self.inner.wait(deadline, completions);
    }
}

/// Returns options in which a page of the store has four pages of the drive, and the pool has frames for a
/// whole batch.
fn pages(torn_pages: TornPages) -> Options {
    let (memory_bytes, log_bytes) = (8 << 20, 8 << 20);
    Options { page_bytes: 16384, torn_pages, memory_bytes, log_bytes, records: 0, ..options() }
}

/// Fills a store on a drive that shares `share_pages` pages per command, writes all of its pages, and returns
/// the share commands.
fn shared(share_pages: u32, torn_pages: TornPages) -> Vec<Box<[ShareRun]>> {
    filled(share_pages, torn_pages).0
}

/// Does the same, and also returns the number of written pages in the statistics of the store.
fn filled(share_pages: u32, torn_pages: TornPages) -> (Vec<Box<[ShareRun]>>, u64) {
    let executor = Executor::new(Limited::new(share_pages));
    let written = run(&executor, |handle| async move {
        let store = Store::create(handle, pages(torn_pages)).await.unwrap();
        let records = (0..6_000u32).map(|key| (key.to_be_bytes().to_vec(), vec![key as u8; 400]));
        fill(&store, "table", records).await;
        store.checkpoint().await.unwrap();
        let report = store.check().await.unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        store.statistics().pages_written
    });
    (executor.with_device(|device| std::mem::take(&mut device.shares)), written)
}

/// The rule: a page that is shared is written once, and counts once in the statistics.
#[test]
fn a_shared_page_is_counted_once() {
    let written = |torn_pages| filled(250, torn_pages).1;
    let once = written(TornPages::None);
    assert_eq!([written(TornPages::Share), written(TornPages::DoubleWrite)], [once, 2 * once]);
}

/// The rule: each share command has as many whole pages of a batch as the drive accepts.
#[test]
fn a_batch_is_shared_with_few_commands_that_have_whole_pages() {
    // 250 pages of the drive are 62 whole pages of the store. A batch has 64.
    for (share_pages, most) in [(256, 64), (250, 62), (9, 2), (7, 1), (4, 1)] {
        let shares = shared(share_pages, TornPages::Share);
        let whole = |run: &ShareRun| run.pages == 4 && [run.destination, run.source].iter().all(is_first);
        assert!(shares.iter().all(|runs| runs.iter().all(whole)), "{share_pages}: {shares:?}");
        let longest = shares.iter().map(|runs| runs.len()).max();
        assert_eq!(longest, Some(most), "of a drive that shares {share_pages} pages");
    }
}

fn is_first(lpn: &Lpn) -> bool {
    lpn.0.is_multiple_of(4)
}

/// The rule: a drive that shares less than one page of the store is refused for `share` with an error that
/// explains it, and `auto` does not choose SHARE.
#[test]
fn a_drive_that_shares_less_than_a_page_is_not_used_for_that() {
    let executor = Executor::new(Limited::new(3));
    let made =
        run(
            &executor,
            |handle| async move { Store::create(handle, pages(TornPages::Share)).await.map(drop) },
        );
    match made {
        Err(Error::Options(why)) => assert!(why.contains("does not share a page of this size"), "{why}"),
        other => panic!("a page would be shared in parts: {other:?}"),
    }
    assert!(shared(3, TornPages::Auto).is_empty());
    assert!(!shared(4, TornPages::Auto).is_empty());
}
