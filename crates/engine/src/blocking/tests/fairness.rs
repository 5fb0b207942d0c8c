//! Fairness of the lock: a thread that waits for it gets it soon, even while a driver is always busy.

use crate::blocking::driving::Driving;
use crate::blocking::jobs::{Broken, Core, Job, Next};
use crate::blocking::primitives::Fair;
use fulgurite_base::Nanos;
use fulgurite_device::{Done, Errand};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The number of turns after which the core ends its job by itself; they take a second or more.
const TURNS: u32 = 20_000;
/// The duration of a turn of the core.
const TURN: Duration = Duration::from_micros(50);

/// A core whose only job ends with the last turn, unless it is stopped before.
struct Busy<'a> {
    job: Option<Job>,
    turns: &'a AtomicU32,
    is_stopped: bool,
    begun: Instant,
}

impl Core for Busy<'_> {
    fn turn(&mut self, ended: &mut Vec<Job>) -> Result<(), Broken> {
        let until = Instant::now() + TURN;
        while Instant::now() < until {}
        let turns = self.turns.fetch_add(1, Ordering::Relaxed) + 1;
        if self.is_stopped || turns == TURNS {
            ended.extend(self.job.take());
        }
        Ok(())
    }

    fn wait(&mut self, _: &mut Vec<Job>) -> Result<(), Broken> {
        Err(Broken)
    }

    fn errand(&mut self, _: Job, _: &mut Vec<Job>) -> Result<Option<Errand>, Broken> {
        Ok(None)
    }

    fn has_errand_for_all(&self) -> bool {
        false
    }

    fn carries_for_all(&self, _: Job) -> bool {
        false
    }

    fn end_errand(&mut self, _: Done, _: &mut Vec<Job>) -> Result<(), Broken> {
        Ok(())
    }

    fn give_up(&mut self, _: Job, _: &mut Vec<Job>) -> Result<(), Broken> {
        Ok(())
    }

    fn interrupt(&self) -> Arc<AtomicBool> {
        Arc::default()
    }

    fn next(&self) -> Next {
        if self.job.is_some() { Next::Turn } else { Next::Nothing }
    }

    fn now(&self) -> Nanos {
        Nanos(self.begun.elapsed().as_nanos() as u64)
    }
}

#[test]
fn a_busy_driver_lets_others_have_the_lock() {
    let turns = AtomicU32::new(0);
    let core = Busy { job: None, turns: &turns, is_stopped: false, begun: Instant::now() };
    let driving = Driving::<_, Fair>::new(core, None);
    thread::scope(|scope| {
        scope.spawn(|| {
            let begin = |core: &mut Busy<'_>, job| {
                core.job = Some(job);
                None::<()>
            };
            assert_eq!(driving.call(None, begin), Ok(None));
        });
        while turns.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        let stop = |core: &mut Busy<'_>, _| {
            core.is_stopped = true;
            Some(())
        };
        assert_eq!(driving.call(None, stop), Ok(Some(())));
    });
    let turns = turns.into_inner();
    assert!(turns < TURNS / 10, "the lock was had after {turns} turns");
}
