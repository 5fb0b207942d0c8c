//! Tests that drive the executor step by step, and tests of wakers of other executors.

use fulgurite_base::{Lpn, Nanos};
use fulgurite_device::{
    Arena, Caps, Command, Completion, Device, Errand, Executor, Fault, FaultDevice, Handle, IoError,
    MemDevice, Operation, Outlook, Park, QueueFull, RunError, Tag, TaskId,
};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

const LATENCY: Nanos = Nanos::from_micros(10);

fn mem(latency: Nanos) -> MemDevice {
    MemDevice::new(128, 512, 32, latency)
}

/// A drive with all optional functions of a device. It hands out its last command as an errand.
struct Probe {
    inner: MemDevice,
    last: Option<Command>,
    registered: usize,
    errands_ended: usize,
    /// Whether a wait returns at once without a completion.
    is_hasty: bool,
}

impl Probe {
    fn new(queue_depth: u32) -> Probe {
        let inner = MemDevice::new(128, 512, queue_depth, LATENCY);
        Probe { inner, last: None, registered: 0, errands_ended: 0, is_hasty: false }
    }
}

struct NoPark;

impl Park for NoPark {
    fn submit(&self) {}

    fn park(&self, _: Option<Nanos>) {}
    fn unpark(&self) {}
}

impl Device for Probe {
    fn caps(&self) -> &Caps {
        self.inner.caps()
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn erases(&self, lpn: Lpn) -> Option<u64> {
        Some(lpn.0 + 7)
    }

    fn register(&mut self, _: &Arc<Arena>) {
        self.registered += 1;
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        if self.last.is_some() && self.inner.caps().queue_depth == 1 {
            return Err(QueueFull(command));
        }
        match self.last.replace(command) {
            Some(before) => self.inner.submit(before),
            None => Ok(()),
        }
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        if let Some(last) = self.last.take() {
            self.inner.submit(last).expect("the queue has room");
        }
        if !self.is_hasty {
            self.inner.wait(deadline, completions);
        }
    }

    fn parker(&self) -> Option<Arc<dyn Park>> {
        Some(Arc::new(NoPark))
    }

    fn take_errand(&mut self, tag: Option<Tag>) -> Option<Errand> {
        let last = self.last.take_if(|last| tag.is_none_or(|tag| tag == last.tag));
        last.map(|command| Errand { tag: command.tag, work: Box::new(|| Err(IoError::Media)) })
    }

    fn end_errand(&mut self) {
        self.errands_ended += 1;
    }

    fn is_bound_to_thread(&self) -> bool {
        true
    }
}

/// A cell for the outcome of a read; `None` until the read ends.
type Outcome = Rc<Cell<Option<Result<(), IoError>>>>;

/// Starts a read of a page in a task.
fn begin_read<D: Device + 'static>(executor: &Executor<D>, page: u64) -> (TaskId, Outcome) {
    let (handle, outcome) = (executor.handle(), Outcome::default());
    let (begun, slot) = (Cell::new(None), Rc::clone(&outcome));
    let read = async move { handle.submit(Operation::read(Lpn(page), 1)).await };
    let now = executor.try_now(read, |task| {
        begun.set(Some(task));
        move |status| slot.set(Some(status))
    });
    assert_eq!(now, None, "a read takes time");
    (begun.take().unwrap(), outcome)
}

#[test]
fn a_future_that_ends_at_once_becomes_no_task() {
    let executor = Executor::new(mem(LATENCY));
    assert_eq!(executor.try_now(async { 5 }, |_| |_: i32| panic!("it has ended")), Some(5));
    assert_eq!(executor.outlook(), Outlook::Idle);
    assert_eq!(executor.run(), Ok(()), "nothing is left that a run would wait for");
}

/// The rule: the completion of a command whose future was dropped wakes no task.
#[test]
fn a_command_without_a_future_wakes_no_task() {
    let executor = Executor::new(mem(LATENCY));
    let (handle, polls) = (executor.handle(), Rc::new(Cell::new(0)));
    let count = Rc::clone(&polls);
    let task = async move {
        let mut read = Some(handle.submit(Operation::read(Lpn(0), 1)));
        let mut sleep = pin!(handle.sleep_until(Nanos(3 * LATENCY.0)));
        poll_fn(|context| {
            count.set(count.get() + 1);
            // This task waits for the read once and drops the read before it has ended.
            if let Some(mut read) = read.take() {
                assert!(pin!(&mut read).poll(context).is_pending());
            }
            sleep.as_mut().poll(context)
        })
        .await;
    };
    executor.block_on(task).unwrap();
    assert_eq!(polls.get(), 2, "once at first, and once when it has slept");
}

#[test]
fn the_outlook_tells_whether_to_run_or_wait() {
    let executor = Executor::new(mem(LATENCY));
    assert_eq!(executor.outlook(), Outlook::Idle);
    let (_, outcome) = begin_read(&executor, 0);
    assert_eq!(executor.outlook(), Outlook::Ready, "the device has not been looked at since");
    executor.turn().unwrap();
    assert_eq!(executor.outlook(), Outlook::Waiting { until: None });
    let handle = executor.handle();
    executor.spawn(async move { handle.sleep_until(Nanos(500)).await });
    assert_eq!(executor.outlook(), Outlook::Ready, "a task is ready");
    executor.turn().unwrap();
    assert_eq!(executor.outlook(), Outlook::Waiting { until: Some(Nanos(500)) });
    executor.wait().unwrap();
    assert_eq!(executor.outlook(), Outlook::Ready, "the sleeper is awake");
    executor.wait().unwrap();
    assert_eq!((executor.outlook(), outcome.get()), (Outlook::Ready, None));
    executor.turn().unwrap();
    assert_eq!((executor.outlook(), outcome.get()), (Outlook::Idle, Some(Ok(()))));
}

#[test]
fn turns_run_everything_without_waiting() {
    let executor = Executor::new(mem(Nanos::ZERO));
    let (_, outcome) = begin_read(&executor, 0);
    executor.turn().unwrap();
    assert_eq!(outcome.get(), None, "the turn has woken the task, and the next one runs it");
    executor.turn().unwrap();
    assert_eq!(outcome.get(), Some(Ok(())));
    // A turn checks the timers even if no command is in flight.
    let (handle, ended) = (executor.handle(), Rc::new(Cell::new(false)));
    let slot = Rc::clone(&ended);
    executor.spawn(async move {
        handle.pause().await;
        slot.set(true);
    });
    executor.turn().unwrap();
    executor.turn().unwrap();
    assert!(ended.get());
}

#[test]
fn a_pause_lets_other_tasks_run() {
    let executor = Executor::new(mem(LATENCY));
    let log = Rc::new(RefCell::new(Vec::new()));
    for task in 0..2 {
        let (handle, log) = (executor.handle(), Rc::clone(&log));
        executor.spawn(async move {
            for step in 0..3 {
                log.borrow_mut().push((step, task));
                handle.pause().await;
            }
        });
    }
    executor.run().unwrap();
    assert_eq!(*log.borrow(), [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]);
    assert_eq!(executor.handle().now(), Nanos::ZERO, "no time passes");
}

#[test]
fn a_future_is_dropped_after_its_patience() {
    let executor = Executor::new(mem(LATENCY));
    let handle = executor.handle();
    let outcome = executor.block_on(async move {
        let after = |time: u64| {
            let handle = handle.clone();
            async move {
                handle.sleep_until(Nanos(time)).await;
                time
            }
        };
        let patient = handle.within(Nanos(100), after(60)).await;
        let impatient = handle.within(Nanos(100), after(1_000)).await;
        // A future that ends exactly when `patience` is over has ended in time.
        let exact = handle.within(Nanos(100), after(260)).await;
        (patient, impatient, exact, handle.now())
    });
    assert_eq!(outcome, Ok((Some(60), None, Some(260), Nanos(260))));
}

#[test]
fn a_waker_works_outside_the_executor() {
    let executor = Executor::new(mem(LATENCY));
    let (kept, is_due, polls) =
        (Rc::new(RefCell::new(None::<Waker>)), Rc::new(Cell::new(false)), Rc::default());
    let (waker, due, count): (_, _, Rc<Cell<u32>>) =
        (Rc::clone(&kept), Rc::clone(&is_due), Rc::clone(&polls));
    executor.spawn(poll_fn(move |context| {
        count.set(count.get() + 1);
        *waker.borrow_mut() = Some(context.waker().clone());
        if due.get() { Poll::Ready(()) } else { Poll::Pending }
    }));
    executor.turn().unwrap();
    assert_eq!((executor.outlook(), polls.get()), (Outlook::Idle, 1));
    // Two wakes before the task runs count as one wake.
    for _ in 0..2 {
        kept.borrow().as_ref().unwrap().wake_by_ref();
    }
    assert_eq!(executor.outlook(), Outlook::Ready);
    executor.turn().unwrap();
    assert_eq!((executor.outlook(), polls.get()), (Outlook::Idle, 2));
    is_due.set(true);
    kept.take().unwrap().wake();
    assert_eq!((executor.run(), polls.get()), (Ok(()), 3));
}

/// A waker that counts its wakes.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_future_wakes_the_waker_that_polled_it() {
    let executor = Executor::new(mem(LATENCY));
    let handle = executor.handle();
    let wakes = executor.block_on(async move {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut read = pin!(handle.submit(Operation::read(Lpn(0), 1)));
        assert_eq!(read.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Pending);
        let mut sleep = pin!(handle.sleep_until(Nanos(500)));
        assert_eq!(sleep.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Pending);
        handle.sleep_until(Nanos::from_micros(20)).await;
        count.0.load(Ordering::Relaxed)
    });
    assert_eq!(wakes, Ok(2));
}

#[test]
fn a_request_dropped_in_flight_is_reaped() {
    let executor = Executor::new(MemDevice::new(128, 512, 1, LATENCY));
    let handle = executor.handle();
    // The device executes one command at a time, so the commands end one after the other.
    let outcome = executor.block_on(async move {
        drop(handle.submit_all((0..3).map(|page| Operation::read(Lpn(page), 1))));
        handle.submit(Operation::read(Lpn(3), 1)).await
    });
    assert_eq!(outcome, Ok(Ok(())));
    assert_eq!(executor.handle().conservation(), (4, 4));
}

#[test]
fn dropping_an_executor_drops_its_tasks() {
    let executor = Executor::new(mem(LATENCY));
    let (handle, alive) = (executor.handle(), Rc::new(()));
    let held = Rc::clone(&alive);
    executor.spawn(async move {
        handle.submit(Operation::read(Lpn(0), 1)).await.unwrap();
        std::future::pending::<()>().await;
        drop(held);
    });
    executor.turn().unwrap();
    assert_eq!(Rc::strong_count(&alive), 2);
    drop(executor);
    assert_eq!(Rc::strong_count(&alive), 1);
}

#[test]
fn a_wait_that_returns_nothing_early_ends_the_run() {
    let executor = Executor::new(Probe { is_hasty: true, ..Probe::new(32) });
    let handle = executor.handle();
    let outcome = executor.block_on(async move { handle.sleep_until(Nanos(100)).await });
    assert_eq!(outcome, Err(RunError::Stalled { tasks: 1, in_flight: 0, submitted: 0, completed: 0 }));
}

#[test]
fn an_errand_is_only_for_the_task_that_asked() {
    let executor = Executor::new(Probe::new(32));
    let (other, _) = begin_read(&executor, 0);
    let (task, outcome) = begin_read(&executor, 1);
    assert!(executor.errand(other, false).is_none(), "another task has submitted the last command");
    let errand = executor.errand(task, false).expect("it is the last command");
    executor.with_device(|device| assert!(device.last.is_none()));
    // The other read was started; the executor waits for it once the device has been polled.
    assert_eq!(executor.outlook(), Outlook::Ready);
    executor.turn().unwrap();
    assert_eq!(executor.outlook(), Outlook::Waiting { until: None });
    executor.end_errand(errand.run()).unwrap();
    assert_eq!(executor.with_device(|device| device.errands_ended), 1, "the device is told");
    assert_eq!(executor.outlook(), Outlook::Ready);
    executor.turn().unwrap();
    assert_eq!(outcome.get(), Some(Err(IoError::Media)), "the errand's own outcome");
    executor.run().unwrap();
    assert_eq!(executor.handle().conservation(), (2, 2));
}

#[test]
fn any_thread_may_take_the_errand_of_a_for_all_task() {
    let executor = Executor::new(Probe::new(32));
    let handle = executor.handle();
    let (waiting, _) = begin_read(&executor, 0);
    executor.turn().unwrap();
    let read = |page: u64| {
        let handle = handle.clone();
        async move {
            let _ = handle.submit(Operation::read(Lpn(page), 1)).await;
        }
    };
    handle.spawn_for_all(read(1));
    executor.run_ready();
    assert!(executor.has_errand_for_all());
    assert!(executor.errand(waiting, false).is_none(), "it waits for commands of its own only");
    let errand = executor.errand(waiting, true).expect("it is alone");
    assert!(!executor.has_errand_for_all(), "it is given out once");
    executor.end_errand(errand.run()).unwrap();
    executor.turn().unwrap();
    // With an ordinary command in flight, the errand is not the only step. The device does not hand out the
    // errand's command, because it has started it already.
    handle.spawn_for_all(read(2));
    executor.run_ready();
    begin_read(&executor, 3);
    assert!(!executor.has_errand_for_all() && executor.errand(waiting, true).is_none());
    // Only its own task may take an ordinary command as an errand, even if it is the only command.
    executor.turn().unwrap();
    begin_read(&executor, 4);
    assert!(!executor.has_errand_for_all() && executor.errand(waiting, true).is_none());
}

/// The rule: awaited tasks run first, but another ready task runs after a bounded number of them.
#[test]
fn awaited_tasks_run_first_but_starve_no_task() {
    let executor = Executor::new(mem(LATENCY));
    let (handle, order) = (executor.handle(), Rc::new(RefCell::new(Vec::new())));
    let run = |name: &'static str| {
        let order = Rc::clone(&order);
        async move { order.borrow_mut().push(name) }
    };
    for _ in 0..2 {
        handle.spawn(run("other"));
    }
    for _ in 0..40 {
        handle.spawn_awaited(run("awaited"));
    }
    executor.run().unwrap();
    let order = order.borrow();
    let others: Vec<usize> = (0..order.len()).filter(|at| order[*at] == "other").collect();
    assert_eq!((others, order.len()), (vec![16, 33], 42), "one after each sixteen");
}

/// The rule: dropping an executor also drops the tasks that other tasks spawn while they are dropped.
#[test]
fn dropping_an_executor_drops_tasks_spawned_meanwhile() {
    struct Adds(Handle<MemDevice>, Rc<()>);
    impl Drop for Adds {
        fn drop(&mut self) {
            // The handle also keeps the executor's core alive, so only dropping the executor ends this cycle.
            let held = (Rc::clone(&self.1), self.0.clone());
            self.0.spawn(async move { drop(held) });
        }
    }
    let executor = Executor::new(mem(LATENCY));
    let held = Rc::new(());
    let adds = Adds(executor.handle(), Rc::clone(&held));
    executor.spawn(async move { drop(adds) });
    drop(executor);
    assert_eq!(Rc::strong_count(&held), 1);
}

/// The rule: an interrupted turn returns after the running task.
#[test]
fn a_turn_can_be_interrupted() {
    let executor = Executor::new(mem(LATENCY));
    let (handle, done) = (executor.handle(), Rc::new(Cell::new(0)));
    for _ in 0..3 {
        let (interrupt, done) = (executor.interrupt(), Rc::clone(&done));
        handle.spawn(async move {
            done.set(done.get() + 1);
            interrupt.store(done.get() == 1, Ordering::Relaxed);
        });
    }
    executor.turn().unwrap();
    assert_eq!((done.get(), executor.outlook()), (1, Outlook::Ready));
    executor.turn().unwrap();
    assert_eq!(done.get(), 3);
}

/// The rule: cancelling a task releases everything that it holds, and its commands in flight complete.
#[test]
fn a_cancelled_task_is_dropped_and_its_command_completes() {
    let executor = Executor::new(mem(LATENCY));
    let (task, outcome) = begin_read(&executor, 0);
    executor.turn().unwrap();
    assert_eq!(Rc::strong_count(&outcome), 2);
    executor.cancel(task);
    assert_eq!((Rc::strong_count(&outcome), executor.outlook()), (1, Outlook::Waiting { until: None }));
    executor.run().unwrap();
    assert_eq!((executor.handle().conservation(), outcome.get()), ((1, 1), None));
}

#[test]
fn only_the_thread_with_the_errand_waits_for_it() {
    let executor = Executor::new(Probe::new(32));
    let (task, outcome) = begin_read(&executor, 0);
    let errand = executor.errand(task, false).expect("it is alone");
    assert_eq!(executor.outlook(), Outlook::Idle);
    executor.end_errand(errand.run()).unwrap();
    executor.run().unwrap();
    assert_eq!(outcome.get(), Some(Err(IoError::Media)));
    // The finished errand is not counted, so the executor waits for the next command.
    begin_read(&executor, 1);
    executor.turn().unwrap();
    assert_eq!(executor.outlook(), Outlook::Waiting { until: None });
}

#[test]
fn an_errand_does_not_overtake_waiting_commands() {
    let executor = Executor::new(Probe::new(1));
    let (_, first) = begin_read(&executor, 0);
    let (task, second) = begin_read(&executor, 1);
    assert!(executor.errand(task, false).is_none(), "the second read has no room yet");
    executor.run().unwrap();
    assert_eq!((first.get(), second.get()), (Some(Ok(())), Some(Ok(()))));
}

#[test]
fn wrappers_forward_all_device_functions() {
    let arena = Arena::new(512);
    let mut faulty = FaultDevice::new(Probe::new(32), Vec::new());
    faulty.register(&arena);
    assert_eq!((faulty.erases(Lpn(3)), faulty.inner().registered), (Some(10), 1));
    assert!(faulty.is_bound_to_thread() && faulty.parker().is_some());
    let plain = FaultDevice::new(mem(LATENCY), Vec::new());
    assert!(!plain.is_bound_to_thread() && plain.parker().is_none() && plain.erases(Lpn(3)).is_none());
    let executor = Executor::new(faulty);
    executor.handle().register(&arena);
    assert_eq!(executor.handle().erases(Lpn(5)), Some(12));
    executor.with_device(|device| assert_eq!(device.inner().registered, 2));
}

#[test]
fn the_named_write_fails_and_changes_nothing() {
    let executor = Executor::new(FaultDevice::new(mem(LATENCY), vec![Fault::FailWrite(1)]));
    let handle = executor.handle();
    let outcomes = executor.block_on(async move {
        let page = |byte: u8| {
            let buffer = Arena::new(512).buffer(0, 512);
            // SAFETY: the buffer is new, so no other code has its address.
            unsafe { buffer.bytes_mut() }.fill(byte);
            buffer
        };
        let mut outcomes = Vec::new();
        for byte in 1..4 {
            let (lpn, from) = (Lpn(u64::from(byte / 3)), Some(page(byte)));
            let write = Operation::Write { lpn, pages: 1, from, stream: Default::default(), durable: false };
            outcomes.push(handle.submit(write).await);
        }
        let (into, read) = (page(0), page(0));
        handle.submit(Operation::Read { lpn: Lpn(0), pages: 1, into: Some(into.clone()) }).await.unwrap();
        handle.submit(Operation::Read { lpn: Lpn(1), pages: 1, into: Some(read.clone()) }).await.unwrap();
        // SAFETY: the reads have completed, so the device no longer changes the buffers.
        let found = unsafe { (into.bytes()[0], read.bytes()[0]) };
        (outcomes, found)
    });
    assert_eq!(outcomes, Ok((vec![Ok(()), Err(IoError::Media), Ok(())], (1, 3))));
}

/// Executes every kind of command at many addresses through a handle. Returns the outcomes.
async fn commands_around(handle: &Handle<MemDevice>, pages: u64) -> Vec<Result<(), IoError>> {
    let arena = Arena::new(8 * 512);
    let mut outcomes = Vec::new();
    for lpn in [0, 1, pages - 2, pages - 1, pages, pages + 3, u64::MAX - 1, u64::MAX] {
        for count in [0, 1, 2, 3] {
            // SAFETY: no command uses the buffer at this moment.
            let buffer = arena.buffer(0, count as usize * 512);
            unsafe { buffer.bytes_mut() }.fill(0xee);
            let (first, from) = (Lpn(lpn), Some(buffer));
            let stream = Default::default();
            for operation in [
                Operation::read(first, count),
                Operation::Write { lpn: first, pages: count, from, stream, durable: false },
                Operation::Trim { lpn: first, pages: count },
                Operation::share(first, Lpn(4), count),
                Operation::share(Lpn(4), first, count),
            ] {
                outcomes.push(handle.submit(operation).await);
            }
        }
    }
    outcomes.push(handle.submit(Operation::Flush).await);
    outcomes
}

/// Returns the first byte of each page of a drive.
async fn first_bytes(handle: &Handle<MemDevice>) -> Vec<u8> {
    let arena = Arena::new(512);
    let mut found = Vec::new();
    for page in 0..handle.caps().pages {
        let into = arena.buffer(0, 512);
        let read = Operation::Read { lpn: Lpn(page), pages: 1, into: Some(into.clone()) };
        handle.submit(read).await.unwrap();
        // SAFETY: the command has completed.
        found.push(unsafe { into.bytes_mut() }[0]);
    }
    found
}

/// The rule: a part of a drive is a drive of its own. Its commands reach no page outside of it, and those that go
/// beyond its end fail as they do at the end of a drive. A part of a part is no exception.
#[test]
fn commands_of_a_part_stay_within_it() {
    const PAGES: u64 = 10;
    let whole = Executor::new(MemDevice::new(PAGES, 512, 32, LATENCY));
    let handle = whole.handle();
    let expected =
        whole.block_on(async move { (commands_around(&handle, PAGES).await, first_bytes(&handle).await) });
    let executor = Executor::new(MemDevice::new(64, 512, 32, LATENCY));
    let handle = executor.handle();
    let work = async move {
        let arena = Arena::new(512);
        let ones = arena.buffer(0, 512);
        // SAFETY: no command uses the buffer at this moment.
        unsafe { ones.bytes_mut() }.fill(0x11);
        let stream = Default::default();
        for page in (0..20).chain(30..64) {
            let (lpn, from) = (Lpn(page), Some(ones.clone()));
            let write = Operation::Write { lpn, pages: 1, from, stream, durable: false };
            handle.submit(write).await.unwrap();
        }
        let part = handle.part(Lpn(8), 40).unwrap().part(Lpn(12), PAGES).unwrap();
        assert_eq!(part.caps().pages, PAGES);
        assert!(part.part(Lpn(1), PAGES).is_none() && part.part(Lpn(u64::MAX), 2).is_none());
        let own = (commands_around(&part, PAGES).await, first_bytes(&part).await);
        let others = first_bytes(&handle).await;
        assert!(others[..20].iter().chain(&others[30..]).all(|byte| *byte == 0x11), "{others:?}");
        own
    };
    assert_eq!(executor.block_on(work), expected);
}

/// The rule: parts begin at erase blocks. A part promises no more about torn writes than its first address allows.
#[test]
fn parts_are_aligned() {
    let caps = |erase_pages, atomic_bytes| Caps { erase_pages, atomic_bytes, ..Caps::plain(512, 100, 1) };
    let parts = |erase_pages, atomic_bytes, count| caps(erase_pages, atomic_bytes).pages_of_parts(count);
    assert_eq!([parts(0, 0, 3), parts(0, 512, 3), parts(0, 4096, 3)], [Some(33), Some(33), Some(32)]);
    assert_eq!([parts(10, 0, 3), parts(10, 4096, 2), parts(12, 4096, 3)], [Some(30), Some(40), Some(24)]);
    assert_eq!([parts(40, 0, 3), parts(0, 0, 0), parts(0, 0, 101)], [None; 3]);
    let atomic = |first| caps(0, 4096).part(Lpn(first), 20).map(|part| part.atomic_bytes);
    assert_eq!(
        [0, 8, 4, 6, 7, 81].map(atomic),
        [Some(4096), Some(4096), Some(2048), Some(1024), Some(512), None]
    );
}

/// The rule: what a handle of a core begins belongs to that core, whichever task uses it: CPU time, tasks, and
/// commands that wait for room in the device.
#[test]
fn a_handle_works_on_its_core() {
    let executor = Executor::with_cores(MemDevice::new(128, 512, 1, LATENCY), 3);
    let handle = executor.handle();
    let work = async move {
        let [first, second] = [1, 2].map(|cpu| handle.on_core(cpu));
        let begin = handle.now();
        let ends = Rc::new(RefCell::new(Vec::new()));
        for (cost, of) in [(100, &first), (100, &second), (100, &first), (30, &handle)] {
            let (of, ends) = (of.clone(), Rc::clone(&ends));
            // The task itself is on the core 0.
            handle.spawn(async move {
                of.compute(Nanos(cost)).await;
                ends.borrow_mut().push((of.now() - begin).0);
            });
        }
        handle.sleep_until(begin + Nanos(1_000)).await;
        assert_eq!(*ends.borrow(), [30, 100, 100, 200]);
        // The drive takes one command at a time, and one command of each core in turn.
        let ends = Rc::new(RefCell::new(Vec::new()));
        for (name, of) in [("a", &first), ("b", &first), ("c", &first), ("d", &second)] {
            let (of, ends) = (of.clone(), Rc::clone(&ends));
            handle.spawn(async move {
                of.submit(Operation::read(Lpn(0), 1)).await.unwrap();
                ends.borrow_mut().push(name);
            });
        }
        handle.sleep_until(handle.now() + Nanos(1_000_000)).await;
        assert_eq!(ends.borrow().concat(), "abdc");
        let spawned = Rc::new(Cell::new(Nanos::ZERO));
        let (own, slot) = (handle.clone(), Rc::clone(&spawned));
        let begin = handle.now();
        first.compute(Nanos(500)).await;
        first.spawn(async move {
            own.compute(Nanos(1)).await;
            slot.set(own.now() - begin);
        });
        handle.sleep_until(begin + Nanos(1_000)).await;
        assert_eq!(spawned.get(), Nanos(501));
    };
    executor.block_on(work).unwrap();
}

/// A drive whose flush of a number fails.
struct FailingFlush(MemDevice, i32);

impl Device for FailingFlush {
    fn caps(&self) -> &Caps {
        self.0.caps()
    }

    fn now(&self) -> Nanos {
        self.0.now()
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        let is_flush = matches!(command.operation, Operation::Flush);
        self.1 -= i32::from(is_flush);
        let operation = match is_flush && self.1 == 0 {
            true => Operation::read(Lpn(u64::MAX), 1),
            false => command.operation,
        };
        self.0.submit(Command { tag: command.tag, operation })
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        self.0.wait(deadline, completions);
    }
}

/// The rule: after a failed flush of a part no flush of any part succeeds, because the writes of all parts may be lost.
/// A flush that is in flight meanwhile is no exception. Other commands go on, and so does one that has the whole drive.
#[test]
fn a_failed_flush_concerns_all_parts() {
    let executor = Executor::new(FailingFlush(mem(LATENCY), 3));
    let handle = executor.handle();
    let work = async move {
        let [first, second] = [0, 64].map(|page| handle.part(Lpn(page), 64).unwrap());
        assert_eq!(first.submit(Operation::Flush).await, Ok(()));
        assert_eq!(second.submit(Operation::Flush).await, Ok(()));
        let failing = first.submit(Operation::Flush);
        let in_flight = second.submit(Operation::Flush);
        assert!(failing.await.is_err() && in_flight.await.is_err());
        assert!(second.submit(Operation::Flush).await.is_err());
        assert_eq!(second.submit(Operation::read(Lpn(0), 1)).await, Ok(()));
        assert_eq!(handle.submit(Operation::Flush).await, Ok(()));
    };
    executor.block_on(work).unwrap();
}
