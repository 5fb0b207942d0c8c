//! Tests that the ideal drive passes the conformance tests, and that the executor detects a faulty drive.

use fulgurite_base::{Lpn, Nanos};
use fulgurite_device::{
    Device, Executor, Fault, FaultDevice, IoError, MemDevice, Operation, RunError, conformance,
};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

fn mem() -> MemDevice {
    MemDevice::new(128, 512, 32, Nanos::from_micros(10))
}

fn run_reads<D: Device + 'static>(device: D) -> Result<Vec<Result<(), IoError>>, RunError> {
    let executor = Executor::new(device);
    let handle = executor.handle();
    executor.block_on(async move {
        let mut outcomes = Vec::new();
        for page in 0..4 {
            outcomes.push(handle.submit(Operation::read(Lpn(page), 1)).await);
        }
        outcomes
    })
}

#[test]
fn the_ideal_drive_conforms() {
    conformance::check_simulated(mem);
    conformance::check_simulated(|| MemDevice::new(64, 4096, 4, Nanos::ZERO));
}

#[test]
fn a_transparent_fault_device_conforms() {
    conformance::check_simulated(|| FaultDevice::new(mem(), Vec::new()));
}

#[test]
fn a_planted_error_reaches_its_request() {
    let outcomes = run_reads(FaultDevice::new(mem(), vec![Fault::FailRead(2)])).unwrap();
    assert_eq!(outcomes, [Ok(()), Ok(()), Err(IoError::Media), Ok(())]);
}

#[test]
fn a_lost_completion_ends_the_run_with_a_reason() {
    let outcome = run_reads(FaultDevice::new(mem(), vec![Fault::LoseCompletion(1)]));
    assert_eq!(outcome, Err(RunError::Stalled { tasks: 1, in_flight: 1, submitted: 2, completed: 1 }));
}

#[test]
fn a_repeated_completion_ends_the_run_with_a_reason() {
    let outcome = run_reads(FaultDevice::new(mem(), vec![Fault::RepeatCompletion(1)]));
    assert!(matches!(outcome, Err(RunError::StrayCompletion(_))), "{outcome:?}");
}

#[test]
fn a_batch_ends_with_its_last_command() {
    let executor = Executor::new(MemDevice::new(128, 512, 2, Nanos::from_micros(10)));
    let handle = executor.handle();
    // Five commands pass through a queue of two in three rounds of 10 µs.
    let ended = executor.block_on(async move {
        handle.submit_all((0..5).map(|page| Operation::write(Lpn(page), 1))).await.unwrap();
        handle.now()
    });
    assert_eq!(ended, Ok(Nanos::from_micros(30)));
}

#[test]
fn run_until_leaves_other_tasks_unfinished() {
    let executor = Executor::new(mem());
    let ended = Rc::new(Cell::new(false));
    let (handle, slot) = (executor.handle(), Rc::clone(&ended));
    executor.spawn(async move {
        handle.sleep_until(Nanos(500)).await;
        slot.set(true);
    });
    let handle = executor.handle();
    let now = executor.run_until(async move {
        handle.sleep_until(Nanos(100)).await;
        handle.now()
    });
    assert_eq!((now, ended.get()), (Ok(Nanos(100)), false));
    executor.run().unwrap();
    assert!(ended.get());
}

#[test]
fn cpu_work_is_served_by_one_core() {
    let executor = Executor::new(mem());
    let log = Rc::new(RefCell::new(Vec::new()));
    for task in 0..3 {
        let (handle, log) = (executor.handle(), Rc::clone(&log));
        executor.spawn(async move {
            handle.compute(Nanos(100)).await;
            log.borrow_mut().push((task, handle.now().0));
        });
    }
    executor.run().unwrap();
    assert_eq!(*log.borrow(), [(0, 100), (1, 200), (2, 300)]);
}

#[test]
fn each_core_has_its_own_cpu_time_and_tasks() {
    let executor = Executor::with_cores(mem(), 2);
    let log = Rc::new(RefCell::new(Vec::new()));
    for task in 0..3 {
        let (handle, log) = (executor.handle(), Rc::clone(&log));
        executor.spawn_on(task, async move {
            handle.compute(Nanos(100)).await;
            let (beside, time) = (handle.clone(), handle.now().0);
            log.borrow_mut().push((task, time));
            handle.spawn(async move {
                beside.compute(Nanos(100)).await;
                log.borrow_mut().push((10 + task, beside.now().0));
            });
        });
    }
    executor.run().unwrap();
    // Tasks 0 and 2 are on core 0. The tasks that they spawn are on core 0 too, and run after both of them.
    assert_eq!(*log.borrow(), [(0, 100), (1, 100), (2, 200), (11, 200), (10, 300), (12, 400)]);
}

#[test]
fn cores_submit_in_turn_to_a_full_device_in_order() {
    let executor = Executor::with_cores(MemDevice::new(128, 512, 2, Nanos::from_micros(10)), 3);
    let log = Rc::new(RefCell::new(Vec::new()));
    // Core 0 first asks for five pages, then core 1 for one page and core 2 for two.
    for (core, pages) in [(0, 5), (1, 1), (2, 2)] {
        let (handle, log) = (executor.handle(), Rc::clone(&log));
        executor.spawn_on(core, async move {
            for page in 0..pages {
                let (io, log, handle) =
                    (handle.submit(Operation::read(Lpn(page), 1)), Rc::clone(&log), handle.clone());
                handle.clone().spawn(async move {
                    io.await.unwrap();
                    log.borrow_mut().push((handle.now().0 / 10_000, core, page));
                });
            }
        });
    }
    executor.run().unwrap();
    // Two commands find room at once. Then each round takes two commands, from one core after another.
    let expected = [(1, 0, 0), (1, 0, 1), (2, 0, 2), (2, 1, 0), (3, 2, 0), (3, 0, 3), (4, 2, 1), (4, 0, 4)];
    assert_eq!(*log.borrow(), expected);
}

#[test]
fn a_command_does_not_overtake_waiting_ones() {
    for cores in [1, 2] {
        let executor = Executor::with_cores(MemDevice::new(128, 512, 1, Nanos::from_micros(10)), cores);
        let log = Rc::new(RefCell::new(Vec::new()));
        for task in 0..2 {
            let (handle, log) = (executor.handle(), Rc::clone(&log));
            executor.spawn_on(task, async move {
                for _ in 0..2 {
                    handle.submit(Operation::read(Lpn(0), 1)).await.unwrap();
                    log.borrow_mut().push(task);
                }
            });
        }
        executor.run().unwrap();
        // Task 0 submits again after its first read, but task 1 has waited from the beginning, so its command
        // goes first.
        assert_eq!(*log.borrow(), [0, 1, 0, 1], "{cores} cores");
    }
}

#[test]
fn a_task_that_nothing_can_wake_is_reported() {
    let executor = Executor::new(mem());
    executor.spawn(std::future::pending());
    assert_eq!(executor.run(), Err(RunError::Stalled { tasks: 1, in_flight: 0, submitted: 0, completed: 0 }));
}
