//! Random schedules of many threads: every call ends, and the same tests find each injected fault.
//!
//! The model checker reports a deadlock if no thread can run. A lost wake-up, or a core without a driver,
//! leads to such a deadlock.

use super::model::World;
use crate::blocking::faults::Planted;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;

/// The number of schedules that each test runs.
const SCHEDULES: usize = 1500;
/// The number of schedules within which an injected fault must be found.
const SEARCH: usize = 20_000;

/// Executes all kinds of jobs, in an order that depends on the thread.
fn mixed(world: &World, thread: usize) {
    for step in 0..3 {
        match (thread + step) % 8 {
            0 => world.read(),
            1 => world.io(),
            2 => world.sleep(10 + 7 * thread as u64),
            3 => {
                world.lock();
                world.io();
                world.unlock();
            }
            4 => world.leave_io(),
            5 => world.large_io(),
            6 => world.io_and_more(),
            _ => world.commit(),
        }
    }
}

/// The seed of all schedules. It is fixed, because a test that fails at random says nothing.
const SEED: u64 = 42;

fn explore(run: impl Fn() + Send + Sync + 'static, schedules: usize) {
    let scheduler = RandomScheduler::new_from_seed(SEED, schedules);
    Runner::new(scheduler, Config::new()).run(run);
}

fn check(parks: bool, keeper: bool, planted: Option<Planted>, threads: usize, schedules: usize) {
    explore(move || World::run(parks, keeper, planted, threads, mixed), schedules);
}

#[test]
fn every_call_ends_beside_a_parked_driver() {
    check(true, false, None, 4, SCHEDULES);
    check(true, false, None, 9, SCHEDULES / 5);
}

#[test]
fn every_call_ends_with_a_device_that_waits_under_the_lock() {
    check(false, false, None, 4, SCHEDULES);
}

#[test]
fn every_call_ends_beside_a_keeper() {
    check(true, true, None, 3, SCHEDULES);
    check(false, true, None, 3, SCHEDULES / 2);
}

#[test]
fn a_hundred_threads_end() {
    check(true, true, None, 100, 20);
}

#[test]
fn schedules_with_few_switches_are_checked_too() {
    let scheduler = PctScheduler::new_from_seed(SEED, 3, SCHEDULES);
    Runner::new(scheduler, Config::new()).run(|| World::run(true, true, None, 3, mixed));
}

/// Runs two threads. The command of one ends only after the timer of the other.
fn timer_beside_a_slow_command(planted: Option<Planted>, schedules: usize) {
    let work = |world: &World, thread: usize| {
        if thread == 0 {
            world.large_io();
        } else {
            world.device_stands_still(true);
            world.sleep(10);
            world.device_stands_still(false);
        }
    };
    explore(move || World::run(true, false, planted, 2, work), schedules);
}

#[test]
fn a_timer_does_not_wait_for_a_command() {
    timer_beside_a_slow_command(None, SCHEDULES);
}

/// Stops the keeper while other threads have jobs.
fn keeper_that_leaves(planted: Option<Planted>, schedules: usize) {
    let work = |world: &World, thread: usize| {
        if thread == 0 {
            world.leave_io();
            world.driving.stop_keeper();
        } else {
            world.leave_io();
            world.lock();
            world.io();
            world.unlock();
        }
    };
    explore(move || World::run(true, true, planted, 3, work), schedules);
}

#[test]
fn a_keeper_may_leave_at_any_time() {
    // Here the keeper is stopped before it has started.
    check(true, true, None, 0, 50);
    keeper_that_leaves(None, SCHEDULES);
}

/// Runs two threads. The errand of one is held back until the commands of the other have completed and its
/// job has ended.
fn errand_beside_a_command(planted: Option<Planted>, schedules: usize) {
    let work = |world: &World, thread: usize| {
        if thread == 0 {
            world.io_and_more();
        } else {
            world.io_before_errands();
        }
    };
    explore(move || World::run(true, false, planted, 2, work), schedules);
}

#[test]
fn an_errand_delays_no_other_job() {
    errand_beside_a_command(None, SCHEDULES);
}

/// Runs threads that commit, and so wait for one command (the write of the log) together, and one thread that
/// also reads.
fn commits(parks: bool, keeper: bool, planted: Option<Planted>, schedules: usize) {
    let work = |world: &World, thread: usize| {
        for _ in 0..2 {
            world.commit();
            if thread == 0 {
                world.read();
                world.io();
            }
        }
    };
    explore(move || World::run(parks, keeper, planted, 4, work), schedules);
}

#[test]
fn commits_keep_each_other_going() {
    commits(true, false, None, SCHEDULES);
    commits(false, false, None, SCHEDULES);
    commits(true, true, None, SCHEDULES);
}

/// Runs threads that want the lock of the model. Some of them give up, and its owner releases it.
fn impatient(parks: bool, keeper: bool, schedules: usize) {
    let work = |world: &World, thread: usize| {
        for step in 0..2 {
            let has_it = match (thread + step) % 3 {
                0 => {
                    world.lock();
                    true
                }
                patience => world.lock_or_leave(patience),
            };
            if has_it {
                world.io();
                world.large_io();
                world.unlock();
            }
        }
    };
    explore(move || World::run(parks, keeper, None, 4, work), schedules);
}

#[test]
fn a_cancelled_job_delays_no_other() {
    impatient(true, false, SCHEDULES);
    impatient(false, false, SCHEDULES);
    impatient(true, true, SCHEDULES);
}

/// Runs two threads. One drives because of a command that no job waits for, and is asked. It answers after
/// the commands of the other thread have completed and the job of that thread has ended.
fn question_beside_a_command(planted: Option<Planted>, schedules: usize) {
    let work = |world: &World, thread: usize| {
        if thread == 0 {
            world.lock_with_slow_answers();
        } else {
            world.lock();
            world.leave_io();
            world.io_before_errands();
        }
        world.unlock();
    };
    explore(move || World::run(true, false, planted, 2, work), schedules);
}

#[test]
fn a_question_delays_no_job() {
    question_beside_a_command(None, SCHEDULES);
}

/// Runs two threads on a device that completes no command. One drives for the other, is asked, and gives up.
fn driver_that_leaves(planted: Option<Planted>, schedules: usize) {
    let work = |world: &World, thread: usize| {
        if thread == 0 {
            if world.lock_or_leave(1) {
                world.unlock();
            }
            world.is_done.store(true, Relaxed);
        } else {
            world.lock();
            world.device_stands_still(true);
            world.leave_io();
            while !world.is_done.load(Relaxed) {
                shuttle::thread::yield_now();
            }
            world.device_stands_still(false);
            world.unlock();
        }
    };
    explore(move || World::run(true, false, planted, 2, work), schedules);
}

#[test]
fn a_driver_is_asked() {
    driver_that_leaves(None, SCHEDULES);
}

#[test]
fn planted_faults_are_found() {
    use Planted::{
        DriverNotAsked, GoneFirst, KeptForItself, LateTimer, LeftToNobody, NoHandOver, NoUnpark, NoWake,
        NotSubmitted, ReturnedUnseen, RoleLost,
    };
    // The model checker prints each failing schedule; here all of them are expected to fail.
    for fault in [NoHandOver, NoWake, NoUnpark, ReturnedUnseen, NotSubmitted] {
        let run = || check(true, false, Some(fault), 4, SEARCH);
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err(), "{fault:?} was not found");
    }
    for fault in [RoleLost, KeptForItself] {
        let run = || keeper_that_leaves(Some(fault), 20 * SEARCH);
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err(), "{fault:?} was not found");
    }
    let run = || driver_that_leaves(Some(DriverNotAsked), 100);
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err(), "DriverNotAsked was not found");
    for scenario in [errand_beside_a_command, question_beside_a_command] {
        let run = || scenario(Some(GoneFirst), SEARCH);
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err(), "GoneFirst was not found");
    }
    let run = || commits(true, false, Some(LeftToNobody), SEARCH);
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err(), "LeftToNobody was not found");
    let run = || timer_beside_a_slow_command(Some(LateTimer), SEARCH);
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err(), "LateTimer was not found");
}
