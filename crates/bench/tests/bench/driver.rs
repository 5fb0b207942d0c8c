//! Tests of the driver: every program runs, the outcome depends only on the seed, and a run for a given time
//! ends soon after that time.

use crate::common::{config, loaded, on_shards, on_store, plan, unwatched};
use fulgurite_base::{Nanos, Prng};
use fulgurite_bench::codec::Key;
use fulgurite_bench::{Benchmark, BenchmarkConfig, Ending, Error, Extent, Figures, Plan, Session};
use fulgurite_engine::sharded::Table;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Returns the text of the benchmark with a small size of its data.
fn small(name: &str) -> String {
    let options = match name {
        "tpcc" => "customers=30,items=200",
        "linkbench" => "ids=500",
        "index-scan" => "orders=800,share=2%",
        name if name.starts_with("ycsb") => "records=500",
        _ => "tables=2,rows=500",
    };
    format!("{name}:{options}")
}

/// Loads, runs and verifies a benchmark. Returns the text of all its measurements.
fn outcome(text: &str, seed: u64) -> String {
    let text = text.to_owned();
    on_store(async move |store| {
        let program = loaded(&store, &text).await;
        let plan = Plan { seed, ..plan(300) };
        let outcome = program.run(&store, &plan, || (), &unwatched()).await.unwrap();
        let verified = program.verify(&store).await.unwrap();
        assert_eq!(outcome.transactions(), 300, "{text}");
        assert_eq!(outcome.figures().transactions(), 300, "{text}");
        assert!(outcome.elapsed > Nanos::ZERO, "{text}");
        assert!(verified.rows > 0, "{text}");
        format!("{outcome:?} {verified:?}")
    })
}

#[test]
fn every_program_runs_and_its_outcome_depends_only_on_the_seed() {
    for name in BenchmarkConfig::registry().names() {
        let text = small(name);
        let first = outcome(&text, 42);
        assert!(first == outcome(&text, 42), "{text}");
        // Only these benchmarks are compared with another seed: if every transaction takes the same time,
        // another seed may change no figure.
        if ["ycsb-a", "tpcc", "linkbench"].contains(&name) {
            assert!(first != outcome(&text, 43), "{text}");
        }
    }
}

/// The rule: every program runs on several shards. Its data are right afterwards, transactions of several shards are
/// counted, and the outcome is a function of the seed.
#[test]
fn every_program_runs_on_several_shards() {
    for (name, goes_across) in [
        ("ycsb-a", false),
        ("ycsb-d", false),
        ("ycsb-e", false),
        ("tpcc", true),
        ("linkbench", true),
        ("sysbench-read-write", true),
        ("index-scan", false),
    ] {
        let outcome = || {
            let text = small(name);
            on_shards(3, async move |store| {
                let program = loaded(&store, &text).await;
                let before = store.commits_across();
                let plan = Plan { cpu_per_op: Nanos::from_micros(2), ..plan(200) };
                let outcome = program.run(&store, &plan, || (), &unwatched()).await.unwrap();
                let verified = program.verify(&store).await.unwrap();
                assert_eq!(store.check().await.unwrap().problems, []);
                assert_eq!(outcome.transactions(), 200, "{text}");
                assert_eq!(store.commits_across() - before > 20, goes_across, "{text}");
                format!("{outcome:?} {verified:?}")
            })
        };
        assert!(outcome() == outcome(), "{name}");
    }
}

/// The rule: the CPU time of a call is charged on the core of its shard. So reads of two shards on two cores take about
/// half as long as on one, as long as the users keep both busy.
#[test]
fn shards_work_on_their_own_cores() {
    let elapsed = |shards| {
        on_shards(shards, async |store| {
            let program = loaded(&store, "ycsb-c:records=500,theta=0.5").await;
            let plan = Plan { users: 16, cpu_per_op: Nanos::from_micros(50), ..plan(2_000) };
            program.run(&store, &plan, || (), &unwatched()).await.unwrap().elapsed.0
        })
    };
    let (one, two) = (elapsed(1), elapsed(2));
    assert!((100_000_000..100_100_000).contains(&one), "{one}");
    assert!((50_000_000..60_000_000).contains(&two), "{two}");
}

/// The rule: a request whose transaction a deadlock has aborted is repeated with the age of its first attempt and when
/// it has the turn. So users who read the same record and then change it abort few transactions for each commit; if
/// all are repeated at once, each commit aborts all others.
#[test]
fn aborted_requests_take_turns() {
    for shards in [1, 3] {
        on_shards(shards, async |store| {
            let table = store.create_table("t").await.unwrap();
            let cpu_per_op = Nanos::from_micros(2);
            let plan = Plan { users: 32, stop: Extent::Ops(600), cpu_per_op, ..Plan::default() };
            let benchmark = Rc::new(Increments(table));
            let outcome = fulgurite_bench::run(&store, &benchmark, &plan, || (), &unwatched()).await.unwrap();
            let number = store.get(table, &[0]).await.unwrap().unwrap();
            assert_eq!(u64::from_be_bytes(number.try_into().unwrap()), 600);
            let retries = outcome.figures().retries();
            assert!((1..1_200).contains(&retries), "{retries} retries of 600 transactions");
        });
    }
}

/// Increments two records, which may be in different shards. Both are read first, under shared locks.
struct Increments(Table);

impl Benchmark for Increments {
    type Request = ();

    fn kinds(&self) -> &[&'static str] {
        &["increment"]
    }

    fn kind(&self, (): &()) -> usize {
        0
    }

    fn draw(&self, _: &mut Prng) {}

    async fn execute(&self, (): &(), session: &Session) -> Result<Ending, Error> {
        let work = session.begin();
        let keys = [0, 1].map(|number| Key::new().u8(number));
        let mut before = [0; 2];
        for (key, before) in keys.iter().zip(&mut before) {
            let found = work.get(self.0, key).await?;
            *before = found.map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().unwrap()));
        }
        for (key, before) in keys.iter().zip(before) {
            work.put(self.0, key, &(before + 1).to_be_bytes()).await?;
        }
        work.commit().await?;
        Ok(Ending::Committed)
    }
}

#[test]
fn reads_and_commits_are_measured_separately() {
    on_store(async |store| {
        let program = loaded(&store, "ycsb-a:records=500").await;
        let outcome = program.run(&store, &plan(400), || (), &unwatched()).await.unwrap();
        let [reads, updates] = [0, 1].map(|kind: usize| outcome.kinds[kind].latency.count());
        // A retried update reads its record again, so retries count as reads. A refused commit is not
        // recorded.
        assert_eq!(outcome.read_latency.count(), reads + updates + outcome.figures().retries());
        assert_eq!(outcome.commit_latency.count(), updates);
        // An update writes a key of 8 bytes and ten fields of 100 bytes.
        assert_eq!(outcome.user_bytes_written, updates * 1_008);
        assert_eq!(outcome.latency.count(), 400);
    });
}

/// The rule: a read is counted as a miss exactly if it needs the drive, whatever CPU time it is charged.
#[test]
fn reads_that_waited_for_the_drive_are_counted_as_misses() {
    // The memory of the store has 16 MiB, so only the larger table does not fit, and each command of the
    // drive takes 20 µs.
    for (records, cpu, some_wait) in [(500, 50, false), (40_000, 0, true)] {
        on_store(async move |store| {
            let program = loaded(&store, &format!("ycsb-c:records={records}")).await;
            // There is only one user, because with several a read may join another user's read and wait for
            // less than a command.
            let plan = Plan { users: 1, cpu_per_op: Nanos::from_micros(cpu), ..plan(2_000) };
            let outcome = program.run(&store, &plan, || (), &unwatched()).await.unwrap();
            let (reads, misses) = (outcome.read_latency, outcome.read_miss_latency);
            assert_eq!((reads.count(), misses.count() > 0), (2_000, some_wait));
            if some_wait {
                assert!(misses.count() < 1_900, "{}", misses.count());
                assert_eq!(reads.sum_ns(), misses.sum_ns(), "memory takes no time here");
                let shortest = misses.percentile_ns(0.0);
                assert!(shortest >= Some(20_000), "{shortest:?}");
            }
        });
    }
}

#[test]
fn a_warm_up_is_not_measured_and_measured_is_called_after_it() {
    on_store(async |store| {
        let program = loaded(&store, "ycsb-f:records=500").await;
        let plan = Plan { warm_up: Extent::Ops(200), ..plan(100) };
        let noted = Rc::new(Cell::new(None));
        let (note, handle) = (Rc::clone(&noted), store.handle().clone());
        // `ended` is called for every transaction of the warm-up and of the measured part, with the time
        // since the beginning of that part.
        let told = Rc::new(RefCell::new(Vec::new()));
        let ended: Rc<dyn Fn(Nanos)> = {
            let told = Rc::clone(&told);
            Rc::new(move |elapsed| told.borrow_mut().push(elapsed))
        };
        let measured = || note.set(Some(handle.now()));
        let outcome = program.run(&store, &plan, measured, &ended).await.unwrap();
        let told = told.take();
        assert_eq!((told.len(), outcome.transactions()), (300, 100));
        assert!(told[..200].is_sorted() && told[200..].is_sorted() && told[200] < told[199]);
        assert_eq!(noted.get(), Some(outcome.begin));
        let updates = program.verify(&store).await.unwrap().changes;
        // The updates of the warm-up are in the data but not in the figures.
        let measured = outcome.kinds[1].latency.count();
        assert!((measured + 60..measured + 140).contains(&updates), "{updates} {measured}");
    });
}

#[test]
fn a_run_by_time_ends_after_its_last_begun_transaction() {
    on_store(async |store| {
        let program = loaded(&store, "ycsb-a:records=500").await;
        let time = Nanos::from_micros(5_000);
        let plan = Plan { stop: Extent::Time(time), interval: Some(Nanos::from_micros(500)), ..plan(0) };
        let outcome = program.run(&store, &plan, || (), &unwatched()).await.unwrap();
        assert!(outcome.transactions() > 100, "{}", outcome.transactions());
        // A transaction takes some tens of microseconds, so the last ones end shortly after the time.
        assert!(outcome.elapsed > time - Nanos::from_micros(500), "{}", outcome.elapsed);
        assert!(outcome.elapsed < time + Nanos::from_micros(1_000), "{}", outcome.elapsed);
        let series = outcome.series.as_ref().unwrap();
        assert!((10..=12).contains(&series.intervals.len()), "{series:?}");
        let sum: u64 = series.intervals.iter().map(Figures::transactions).sum();
        assert_eq!(sum, outcome.transactions());
    });
}

#[test]
fn cpu_is_charged_to_one_core() {
    on_store(async |store| {
        let program = loaded(&store, "ycsb-c:records=500").await;
        let plan = Plan { cpu_per_op: Nanos::from_micros(50), ..plan(400) };
        let outcome = program.run(&store, &plan, || (), &unwatched()).await.unwrap();
        // Each transaction is one look-up, which is charged 50 µs.
        assert!(outcome.elapsed >= Nanos::from_micros(400 * 50), "{}", outcome.elapsed);
        assert!(outcome.elapsed < Nanos::from_micros(400 * 60), "{}", outcome.elapsed);
    });
}

#[test]
fn every_row_of_a_scan_costs_cpu() {
    on_store(async |store| {
        let program = loaded(&store, "ycsb-e:records=500").await;
        let plan = Plan { users: 1, cpu_per_op: Nanos::from_micros(50), ..plan(200) };
        let outcome = program.run(&store, &plan, || (), &unwatched()).await.unwrap();
        // Scans have 50 rows on average, and fewer at the end of the table, so 30 is a safe bound.
        assert!(outcome.elapsed >= Nanos::from_micros(200 * 30 * 50), "{}", outcome.elapsed);
    });
}

#[test]
fn a_transaction_without_writes_is_not_counted_as_a_commit() {
    on_store(async |store| {
        let program = loaded(&store, "sysbench-point-select:rows=100").await;
        let outcome = program.run(&store, &plan(50), || (), &unwatched()).await.unwrap();
        assert_eq!((outcome.read_latency.count(), outcome.commit_latency.count()), (50, 0));
    });
}

/// The most requests that a test may execute. It is far more than any run here has, so that an endless run
/// fails soon.
const ASKED_MOST: usize = 1000;

/// A benchmark that refuses every request twice and records the requests.
#[derive(Default)]
struct Refusing {
    asked: RefCell<Vec<u64>>,
}

impl Benchmark for Refusing {
    type Request = u64;

    fn kinds(&self) -> &[&'static str] {
        &["refused"]
    }

    fn kind(&self, _: &u64) -> usize {
        0
    }

    fn draw(&self, prng: &mut Prng) -> u64 {
        prng.next_u64()
    }

    async fn execute(&self, request: &u64, _: &Session) -> Result<Ending, Error> {
        self.asked.borrow_mut().push(*request);
        if self.asked.borrow().len() > ASKED_MOST {
            return Err(Error::Broken("it is asked without end".to_owned()));
        }
        match self.asked.borrow().iter().filter(|asked| *asked == request).count() {
            3 => Ok(Ending::Committed),
            _ => Err(fulgurite_engine::Error::Deadlock.into()),
        }
    }
}

#[test]
fn a_refused_request_is_repeated_unchanged() {
    on_store(async |store| {
        let refusing = Rc::new(Refusing::default());
        let outcome = fulgurite_bench::run(&store, &refusing, &plan(40), || (), &unwatched()).await.unwrap();
        assert_eq!((outcome.transactions(), outcome.figures().retries()), (40, 80));
        // There are three tries for each of 40 requests, and all requests differ.
        let mut asked = refusing.asked.take();
        asked.sort_unstable();
        asked.dedup();
        assert_eq!(asked.len(), 40);
    });
}

/// A benchmark whose transactions take no time. They are rolled back, or fail if `fails` is set.
#[derive(Default)]
struct Own {
    fails: bool,
    asked: Cell<u64>,
}

impl Own {
    /// The most transactions that a run may execute. It is more than a run by time needs to detect that it
    /// would not end.
    const ASKED_MOST: u64 = 5_000_000;

    fn ending_well() -> Rc<Own> {
        Rc::default()
    }
}

impl Benchmark for Own {
    type Request = ();

    fn kinds(&self) -> &[&'static str] {
        &["nothing"]
    }

    fn kind(&self, (): &()) -> usize {
        0
    }

    fn draw(&self, prng: &mut Prng) {
        prng.next_u64();
    }

    async fn execute(&self, (): &(), _: &Session) -> Result<Ending, Error> {
        self.asked.update(|asked| asked + 1);
        match self.fails || self.asked.get() > Own::ASKED_MOST {
            true => Err(Error::Broken("it fails".to_owned())),
            false => Ok(Ending::RolledBack),
        }
    }
}

#[test]
fn a_run_by_time_that_would_not_end_is_refused() {
    on_store(async |store| {
        let plan = Plan { stop: Extent::Time(Nanos(u64::MAX / 2)), ..plan(0) };
        let refused = fulgurite_bench::run(&store, &Own::ending_well(), &plan, || (), &unwatched()).await;
        assert!(matches!(refused, Err(Error::NoTime { .. })), "{refused:?}");
    });
}

#[test]
fn a_failure_ends_the_run_and_rollbacks_are_counted() {
    on_store(async |store| {
        let failed = fulgurite_bench::run(
            &store,
            &Rc::new(Own { fails: true, ..Own::default() }),
            &plan(100),
            || (),
            &unwatched(),
        )
        .await;
        assert_eq!(failed.unwrap_err().to_string(), "it fails");
        let outcome =
            fulgurite_bench::run(&store, &Own::ending_well(), &plan(100), || (), &unwatched()).await;
        assert_eq!(outcome.unwrap().figures().rollbacks(), 100);
    });
}

#[test]
fn a_store_is_opened_only_for_the_data_that_it_holds() {
    on_store(async |store| {
        let sentence = config("tpcc").open(&store).await.err().unwrap().to_string();
        assert!(sentence.starts_with("the store holds no complete data"), "{sentence}");
        loaded(&store, "ycsb-a:records=500").await;
        // Another workload and another popularity use the same data, so they can be opened.
        config("ycsb-e:records=500,theta=0.5").open(&store).await.unwrap();
        let sentence = config("ycsb-a:records=501").open(&store).await.err().unwrap().to_string();
        assert_eq!(
            sentence,
            "the store holds the data of `ycsb:records=500,fields=10,field_bytes=100`, and \
             `ycsb:records=501,fields=10,field_bytes=100` was asked for; load it into another store"
        );
        let sentence = config("tpcc").load(&store, 7).await.unwrap_err().to_string();
        assert!(sentence.starts_with("the store already holds"), "{sentence}");
    });
}

#[test]
fn the_size_of_data_is_about_the_announced_one() {
    for text in [
        "ycsb-a:records=20000",
        "ycsb-e:records=5000,fields=20",
        "tpcc:customers=300,items=20000",
        "tpcc:customers=600,items=5000,warehouses=2",
        "linkbench:ids=5000",
        "linkbench:ids=3000,links=6",
        "sysbench-read-write:rows=10000",
        "sysbench-insert:rows=3000,tables=3",
        "index-scan:orders=20000",
    ] {
        let took = on_store(async move |store| {
            let before = store.statistics().space_bytes;
            loaded(&store, text).await;
            store.statistics().space_bytes - before
        });
        let share = config(text).data_bytes() as f64 / took as f64;
        assert!((0.8..1.3).contains(&share), "{text}: {share} of {took}");
    }
}
