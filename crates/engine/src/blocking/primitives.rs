//! The lock and the bell that threads synchronise with. The model checker replaces them.

use fulgurite_base::Nanos;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::hint;
use std::ops::DerefMut;
use std::time::Duration;

/// A mutex, and a bell to sleep on.
pub(super) trait Primitives: 'static {
    type Mutex<T: Send>: Send + Sync;
    type Guard<'a, T: Send + 'a>: DerefMut<Target = T>;
    /// Something to sleep on, without the mutex. At most one thread sleeps on it.
    type Bell: Default + Send + Sync;

    /// The longest time that a driver holds the mutex before it lets others in. Letting one in costs as much
    /// as waking a thread.
    const LONGEST_HOLD: Nanos;

    /// Creates a mutex around `value`.
    fn mutex<T: Send>(value: T) -> Self::Mutex<T>;

    fn lock<T: Send>(mutex: &Self::Mutex<T>) -> Self::Guard<'_, T>;

    /// Locks the mutex if it is free.
    fn try_lock<T: Send>(mutex: &Self::Mutex<T>) -> Option<Self::Guard<'_, T>>;

    /// Passes the mutex to a thread that waits for it, if one does, and locks it again.
    fn let_in<'a, T: Send + 'a>(guard: Self::Guard<'a, T>) -> Self::Guard<'a, T>;

    /// Sleeps until the bell rings, for `at_most`. Returns at once if it has rung before. Returns whether the
    /// time is over.
    fn sleep(bell: &Self::Bell, at_most: Option<Nanos>) -> bool;

    /// Wakes the sleeping thread, or the next one that will sleep.
    fn ring(bell: &Self::Bell);
}

/// Attempts to lock before a thread sleeps, about ten microseconds: most holders need less, and waking a
/// thread takes longer.
const SPINS: u32 = 24;
/// The pause between two attempts doubles up to 2 to this power.
const LONGEST_SPIN: u32 = 6;

/// A bell of [`Fair`].
#[derive(Default)]
pub(super) struct Bell {
    is_rung: Mutex<bool>,
    changed: Condvar,
}

/// The primitives of `parking_lot`: a thread that has waited for half a millisecond gets the mutex next. With
/// the standard library's, a thread that unlocks and locks again is faster than the woken one.
pub(super) struct Fair;

impl Primitives for Fair {
    type Mutex<T: Send> = Mutex<T>;
    type Guard<'a, T: Send + 'a> = MutexGuard<'a, T>;
    type Bell = Bell;
    const LONGEST_HOLD: Nanos = Nanos::from_micros(500);

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
