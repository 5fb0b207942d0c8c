//! The synchronisation primitives of the driving protocol: a mutex, and a bell to sleep on. The model checker
//! replaces them.

use fulgurite_base::Nanos;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::hint;
use std::ops::DerefMut;
use std::time::Duration;

/// A kind of mutex, and a kind of bell to sleep on.
pub(super) trait Primitives: 'static {
    type Mutex<T: Send>: Send + Sync;
    type Guard<'a, T: Send + 'a>: DerefMut<Target = T>;
    /// A bell that a thread sleeps on without holding the mutex. At most one thread sleeps on a bell.
    type Bell: Default + Send + Sync;

    /// The longest time that a driver holds the mutex before it lets other threads take it. To let one in
    /// costs as much as waking a thread.
    const LONGEST_HOLD: Nanos;

    /// Creates a mutex around `value`.
    fn mutex<T: Send>(value: T) -> Self::Mutex<T>;

    fn lock<T: Send>(mutex: &Self::Mutex<T>) -> Self::Guard<'_, T>;

    /// Locks the mutex if it is free; returns `None` if it is not.
    fn try_lock<T: Send>(mutex: &Self::Mutex<T>) -> Option<Self::Guard<'_, T>>;

    /// Passes the mutex to a thread that waits for it, if there is one, and locks it again.
    fn let_in<'a, T: Send + 'a>(guard: Self::Guard<'a, T>) -> Self::Guard<'a, T>;

    /// Sleeps until the bell rings, at most for `at_most`. Returns at once if it has rung before. Returns
    /// whether the time ran out.
    fn sleep(bell: &Self::Bell, at_most: Option<Nanos>) -> bool;

    /// Wakes the thread that sleeps on the bell, or the next one that would sleep.
    fn ring(bell: &Self::Bell);
}

/// The number of attempts to lock the mutex before a thread sleeps; they take about ten microseconds. Most
/// holders need less time, and waking a thread takes longer.
const SPINS: u32 = 24;
/// The binary logarithm of the longest pause between two attempts. The pause doubles up to this limit.
const LONGEST_SPIN: u32 = 6;

/// The bell of [`Fair`].
#[derive(Default)]
pub(super) struct Bell {
    is_rung: Mutex<bool>,
    changed: Condvar,
}

/// The primitives of the `parking_lot` library. A thread that has waited for half a millisecond gets the
/// mutex next. With the mutex of the standard library, a thread that unlocks and locks again is always faster
/// than the woken one.
pub(super) struct Fair;

impl Primitives for Fair {
    type Mutex<T: Send> = Mutex<T>;
    type Guard<'a, T: Send + 'a> = MutexGuard<'a, T>;
    type Bell = Bell;
    const LONGEST_HOLD: Nanos = Nanos::from_micros(200);

    fn mutex<T: Send>(value: T) -> Mutex<T> {
        Mutex::new(value)
    }

    #[inline]
    fn lock<T: Send>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        for spins in 0..SPINS {
            match mutex.try_lock() {
                Some(guard) => return guard,
                None => (0..1 << spins.min(LONGEST_SPIN)).for_each(|_| hint::spin_loop()),
            }
        }
        mutex.lock()
    }

    #[inline]
    fn try_lock<T: Send>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
        mutex.try_lock()
    }

    #[inline]
    fn let_in<'a, T: Send + 'a>(mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard::bump(&mut guard);
        guard
    }

    fn sleep(bell: &Bell, at_most: Option<Nanos>) -> bool {
        let at_most = at_most.map(|at_most| Duration::from_nanos(at_most.0));
        let mut is_rung = bell.is_rung.lock();
        while !*is_rung {
            match at_most {
                Some(at_most) if bell.changed.wait_for(&mut is_rung, at_most).timed_out() => return true,
                Some(_) => {}
                None => bell.changed.wait(&mut is_rung),
            }
        }
        *is_rung = false;
        false
    }

    fn ring(bell: &Bell) {
        *bell.is_rung.lock() = true;
        bell.changed.notify_one();
    }
}
