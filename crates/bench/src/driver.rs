//! Drives a benchmark in a closed loop. N users, each a task of its own, take transactions from a common
//! supply until the supply is empty.
//!
//! Each user draws its requests from its own random stream, so the requests of a user depend only on the seed
//! and on the number of its transactions. On a deterministic device, the whole run depends only on the seed.
//! A request that the store refuses with a retryable error is repeated unchanged, with the age of its first
//! transaction and when it has the turn ([`Store::wait_for_turn`]).

use crate::benchmark::{Benchmark, Ending};
use crate::error::Error;
use crate::meter::{Meter, Outcome};
use crate::session::Session;
use fulgurite_base::{Nanos, Prng};
use fulgurite_engine::sharded::Store;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// The extent of the warm-up or of the measured part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The number of transactions of all users together.
    Ops(u64),
    /// The duration on the device's clock in which transactions may begin.
    Time(Nanos),
}

/// The parameters of a benchmark run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The number of users, at least one. Each has one transaction at a time.
    pub users: u32,
    /// The extent of the measured part of the run.
    pub stop: Extent,
    /// The extent of the warm-up, the unmeasured part before; `Extent::Ops(0)` for none.
    pub warm_up: Extent,
    /// The seed of all random choices.
    pub seed: u64,
    /// The CPU time of each call of the store on a simulated device: a look-up, each row of a scan, a write,
    /// a commit. It is charged on the core of the shard that the call uses.
    pub cpu_per_op: Nanos,
    /// The length of an interval of the time series; `None` for no series.
    pub interval: Option<Nanos>,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            users: 1,
            stop: Extent::Ops(10_000),
            warm_up: Extent::Ops(0),
            seed: 42,
            cpu_per_op: Nanos::ZERO,
            interval: None,
        }
    }
}

/// The number of retries of one transaction after which the run fails, so that every run ends.
const RETRIES_MOST: u32 = 100_000;

/// After this many transactions, a run by time is refused if they took less than [`TRANSACTION_LEAST_NS`] of
/// the device's time each on average.
const TRANSACTIONS_PROBED: u64 = 1_000_000;
const TRANSACTION_LEAST_NS: u64 = 10;

/// Runs a benchmark whose data are loaded. The warm-up runs first. When its last transaction has ended, the
/// measured part begins. `measured` is called in between, while no transaction runs, so that the caller can
/// read the counters of the layers below. `ended` is called after each transaction, with the time since the
/// beginning of the current part, so that the caller can show progress.
///
/// Returns when the last transaction has ended. Fails with the first error that is not retryable; the other
/// users then finish their transactions and stop.
pub async fn run<B: Benchmark>(
    store: &Store,
    benchmark: &Rc<B>,
    plan: &Plan,
    measured: impl FnOnce(),
    ended: &Rc<dyn Fn(Nanos)>,
) -> Result<Outcome, Error> {
    if plan.warm_up != Extent::Ops(0) {
        // A time series of the warm-up would not be used, so none is recorded.
        let plan = Plan { interval: None, ..*plan };
        part(store, benchmark, &plan, (plan.warm_up, "warm-up"), ended).await?;
    }
    measured();
    part(store, benchmark, plan, (plan.stop, "user"), ended).await
}

/// Runs the warm-up or the measured part. `name` selects the random streams of the users.
async fn part<B: Benchmark>(
    store: &Store,
    benchmark: &Rc<B>,
    plan: &Plan,
    (extent, name): (Extent, &str),
    ended: &Rc<dyn Fn(Nanos)>,
) -> Result<Outcome, Error> {
    let begin = store.handle().now();
    let meter = Rc::new(Meter::new(benchmark.kinds(), begin, plan.interval));
    let supply = Rc::new(Supply::new(extent, begin, plan.users));
    let looked = Rc::new(Cell::new(begin));
    for number in 0..plan.users {
        let session = Session::new(store, &meter, plan.cpu_per_op, &looked);
        let prng = Prng::new(plan.seed, &format!("{name} {number}"));
        let (benchmark, supply, meter) = (Rc::clone(benchmark), Rc::clone(&supply), Rc::clone(&meter));
        let ended = Rc::clone(ended);
        let tell = move |now: Nanos| ended(now.saturating_sub(begin));
        store.handle().spawn(async move {
            let left = user(&*benchmark, &session, prng, (&supply, &meter), tell).await;
            supply.leave(left.err());
        });
    }
    supply.all_left().await?;
    Ok(meter.outcome())
}

/// Runs one user, which executes transactions until the supply is empty.
async fn user<B: Benchmark>(
    benchmark: &B,
    session: &Session,
    mut prng: Prng,
    (supply, meter): (&Supply, &Meter),
    tell: impl Fn(Nanos),
) -> Result<(), Error> {
    while supply.take(session.now(), meter)? {
        let request = benchmark.draw(&mut prng);
        let kind = benchmark.kind(&request);
        let begin = session.now();
        session.next_request();
        let mut retries = 0;
        let ending = loop {
            let tried = session.now();
            match benchmark.execute(&request, session).await {
                Ok(ending) => break ending,
                Err(error) if !error.is_retryable() => return Err(error),
                Err(_) if retries == RETRIES_MOST => {
                    return Err(Error::Starved { kind: benchmark.kinds()[kind], retries });
                }
                Err(_) => {
                    retries += 1;
                    meter.retry(kind, session.now());
                    // The transaction that caused the conflict continues first, because this user waits for
                    // its turn among the aborted transactions, and among the users.
                    session.wait_for_turn().await;
                    session.turn(tried).await;
                }
            }
        };
        let now = session.now();
        meter.end(kind, now, now.saturating_sub(begin), ending == Ending::RolledBack)?;
        tell(now);
        session.turn(begin).await;
    }
    Ok(())
}

/// The supply of transactions to all users of a part, and the number of users that still run.
struct Supply {
    left: Cell<u64>,
    until: Nanos,
    users: Cell<u32>,
    failure: RefCell<Option<Error>>,
    waker: RefCell<Option<Waker>>,
}

impl Supply {
    fn new(extent: Extent, begin: Nanos, users: u32) -> Supply {
        let (left, until) = match extent {
            Extent::Ops(count) => (count, Nanos::MAX),
            Extent::Time(time) => (u64::MAX, Nanos(begin.0.saturating_add(time.0))),
        };
        let (left, users) = (Cell::new(left), Cell::new(users));
        Supply { left, until, users, failure: RefCell::default(), waker: RefCell::default() }
    }

    /// Takes one transaction from the supply, if one is left. Fails if a run by time would not end.
    fn take(&self, now: Nanos, meter: &Meter) -> Result<bool, Error> {
        if now >= self.until || self.left.get() == 0 {
            return Ok(false);
        }
        self.left.set(self.left.get() - 1);
        let (transactions, elapsed) = meter.progress(now);
        let by_time = self.until < Nanos::MAX;
        if by_time
            && transactions >= TRANSACTIONS_PROBED
            && elapsed.0 < transactions.saturating_mul(TRANSACTION_LEAST_NS)
        {
            return Err(Error::NoTime { transactions, elapsed_ns: elapsed.0 });
        }
        Ok(true)
    }

    fn leave(&self, failure: Option<Error>) {
        if let Some(error) = failure {
            // The empty supply makes the other users stop. Only the first error is reported.
            self.left.set(0);
            self.failure.borrow_mut().get_or_insert(error);
        }
        self.users.set(self.users.get() - 1);
        if self.users.get() == 0
            && let Some(waker) = self.waker.take()
        {
            waker.wake();
        }
    }

    async fn all_left(&self) -> Result<(), Error> {
        poll_fn(|context| {
            if self.users.get() == 0 {
                return Poll::Ready(());
            }
            self.waker.replace(Some(context.waker().clone()));
            Poll::Pending
        })
        .await;
        self.failure.take().map_or(Ok(()), Err)
    }
}
