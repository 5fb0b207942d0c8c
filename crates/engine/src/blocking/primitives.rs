//! The locks and signals that threads meet at. The model checker brings its own.

use fulgurite_base::Nanos;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::hint;
use std::ops::DerefMut;
use std::time::Duration;

/// A mutex and a condition variable.
pub trait Primitives: 'static {
    /// A mutex.
    type Mutex<T: Send>: Send + Sync;
    /// A locked mutex.
    type Guard<'a, T: Send + 'a>: DerefMut<Target = T>;
    /// What a thread sleeps on. One thread at most sleeps on each.
    type Condvar: Default + Send + Sync;

    /// A driver that has held the mutex for so long lets others in. Each time costs as long as it takes to wake one.
    const LONGEST_HOLD: Nanos;

    /// A mutex that holds `value`.
    fn mutex<T: Send>(value: T) -> Self::Mutex<T>;

    /// Waits for the mutex.
    fn lock<T: Send>(mutex: &Self::Mutex<T>) -> Self::Guard<'_, T>;

    /// Gives the mutex to a thread that waits for it, if one does, and takes it again.
    fn let_in<'a, T: Send + 'a>(guard: Self::Guard<'a, T>) -> Self::Guard<'a, T>;

    /// Gives the mutex up, sleeps until [`Primitives::notify`] or for no reason, but no longer than `at_most`, and takes the
    /// mutex again. Returns whether it has slept that long.
    fn wait<'a, T: Send + 'a>(
        condvar: &Self::Condvar,
        guard: Self::Guard<'a, T>,
        at_most: Option<Nanos>,
    ) -> (Self::Guard<'a, T>, bool);

    /// Wakes who sleeps.
    fn notify(condvar: &Self::Condvar);
}

/// Attempts at a lock before a thread sleeps, about ten microseconds: who has the lock mostly needs less, and to wake a thread
/// takes longer.
const SPINS: u32 = 24;
/// Pauses between two of them double up to 2 to the power of this.
const LONGEST_SPIN: u32 = 6;

/// Those of `parking_lot`: who has waited for half a millisecond gets its mutex next. With the standard library's, who gives the mutex up
/// and takes it again has it before whoever was woken.
pub struct Fair;

impl Primitives for Fair {
    type Mutex<T: Send> = Mutex<T>;
    type Guard<'a, T: Send + 'a> = MutexGuard<'a, T>;
    type Condvar = Condvar;
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
    fn let_in<'a, T: Send + 'a>(mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard::bump(&mut guard);
        guard
    }

    fn wait<'a, T: Send + 'a>(
        condvar: &Condvar,
        mut guard: MutexGuard<'a, T>,
        at_most: Option<Nanos>,
    ) -> (MutexGuard<'a, T>, bool) {
        let has_waited = match at_most {
            Some(at_most) => condvar.wait_for(&mut guard, Duration::from_nanos(at_most.0)).timed_out(),
            None => {
                condvar.wait(&mut guard);
                false
            }
        };
        (guard, has_waited)
    }

    fn notify(condvar: &Condvar) {
        condvar.notify_one();
    }
}
