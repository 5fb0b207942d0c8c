//! The locks and signals that threads meet at. The model checker brings its own.

use fulgurite_base::Nanos;
use std::hint;
use std::ops::DerefMut;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// A mutex and a condition variable.
pub trait Primitives: 'static {
    /// A mutex.
    type Mutex<T: Send>: Send + Sync;
    /// A locked mutex.
    type Guard<'a, T: Send + 'a>: DerefMut<Target = T>;
    /// What a thread sleeps on. One thread at most sleeps on each.
    type Condvar: Default + Send + Sync;

    /// A mutex that holds `value`.
    fn mutex<T: Send>(value: T) -> Self::Mutex<T>;

    /// Waits for the mutex.
    fn lock<T: Send>(mutex: &Self::Mutex<T>) -> Self::Guard<'_, T>;

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

/// Those of the standard library. A panic under the lock is told in another way, so poisoning is not looked at.
pub struct Std;

impl Primitives for Std {
    type Mutex<T: Send> = Mutex<T>;
    type Guard<'a, T: Send + 'a> = MutexGuard<'a, T>;
    type Condvar = Condvar;

    fn mutex<T: Send>(value: T) -> Mutex<T> {
        Mutex::new(value)
    }

    #[inline]
    fn lock<T: Send>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        for spins in 0..SPINS {
            match mutex.try_lock() {
                Ok(guard) => return guard,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    (0..1 << spins.min(LONGEST_SPIN)).for_each(|_| hint::spin_loop())
                }
            }
        }
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a, T: Send + 'a>(
        condvar: &Condvar,
        guard: MutexGuard<'a, T>,
        at_most: Option<Nanos>,
    ) -> (MutexGuard<'a, T>, bool) {
        let Some(at_most) = at_most else {
            return (condvar.wait(guard).unwrap_or_else(PoisonError::into_inner), false);
        };
        let waited = condvar.wait_timeout(guard, Duration::from_nanos(at_most.0));
        let (guard, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        (guard, waited.timed_out())
    }

    fn notify(condvar: &Condvar) {
        condvar.notify_one();
    }
}
