//! The locks and signals that threads meet at. The model checker brings its own.

use fulgurite_base::Nanos;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::hint;
use std::ops::DerefMut;
use std::time::Duration;

/// A mutex, and what threads sleep on.
pub trait Primitives: 'static {
    /// A mutex.
    type Mutex<T: Send>: Send + Sync;
    /// A locked mutex.
    type Guard<'a, T: Send + 'a>: DerefMut<Target = T>;
    /// What a thread sleeps on, without the mutex. One thread at most sleeps on each.
    type Bell: Default + Send + Sync;

    /// A driver that has held the mutex for so long lets others in. Each time costs as long as it takes to wake one.
    const LONGEST_HOLD: Nanos;

    /// A mutex that holds `value`.
    fn mutex<T: Send>(value: T) -> Self::Mutex<T>;

    /// Waits for the mutex.
    fn lock<T: Send>(mutex: &Self::Mutex<T>) -> Self::Guard<'_, T>;

    /// Takes the mutex where nobody has it.
    fn try_lock<T: Send>(mutex: &Self::Mutex<T>) -> Option<Self::Guard<'_, T>>;

    /// Gives the mutex to a thread that waits for it, if one does, and takes it again.
    fn let_in<'a, T: Send + 'a>(guard: Self::Guard<'a, T>) -> Self::Guard<'a, T>;

    /// Sleeps until the bell is rung, also where that was before, but no longer than `at_most`. Returns whether it has slept that long.
    fn sleep(bell: &Self::Bell, at_most: Option<Nanos>) -> bool;

    /// Wakes who sleeps, or will sleep next.
    fn ring(bell: &Self::Bell);
}

/// Attempts at a lock before a thread sleeps, about ten microseconds: who has the lock mostly needs less, and to wake a thread
/// takes longer.
const SPINS: u32 = 24;
/// Pauses between two of them double up to 2 to the power of this.
const LONGEST_SPIN: u32 = 6;

/// A bell of [`Fair`].
#[derive(Default)]
pub struct Bell {
    is_rung: Mutex<bool>,
    changed: Condvar,
}

/// Those of `parking_lot`: who has waited for half a millisecond gets its mutex next. With the standard library's, who gives the mutex up
/// and takes it again has it before whoever was woken.
pub struct Fair;

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
