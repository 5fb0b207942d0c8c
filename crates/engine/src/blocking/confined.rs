//! Confined values: lets several threads use a single-threaded value in turn. This is the only file of
//! `blocking` with `unsafe`.
//!
//! The executor and the store of a shard consist of `Rc`, `Cell` and `RefCell`. The compiler keeps such
//! values on one thread, because two clones of one `Rc` on two threads would change its count without
//! synchronisation. That cannot happen to a [`Confined`] value, for these reasons:
//!
//! 1. *Everything that is shared is inside.* [`Confined::make`] builds the value from inputs that are `Send`.
//!    So every `Rc` was created by `make`, and all clones of it are inside the value.
//! 2. *Nothing gets out.* The value is used only through [`Confined::with`] and [`Confined::look`]. The
//!    closure and its result are `Send`, so neither can hold a clone of an inner `Rc`, or a reference into
//!    the value.
//! 3. *One thread at a time.* `with` takes `&mut self`. A `Confined` is not `Sync`. It is in a mutex, which
//!    orders the accesses of different threads.
//! 4. *No hidden ways.* The type system does not see thread-local variables, in which a closure could store a
//!    clone. No closure of this module does so. Three kinds of user code run inside, and none can get a clone
//!    of an inner `Rc`: devices, which are `Send` themselves; policies of the pool, which are `Send`; and
//!    functions that extract index keys, which are `Send` and `Sync` and see only bytes.
//! 5. *No dependence on a thread.* Nothing inside depends on the thread that created it: the wakers of the
//!    executor are `Arc`s, and a device that is bound to its thread is refused.
//!
//! For the same reasons any thread may drop the value.

#![allow(unsafe_code)]

/// A single-threaded value that any thread may use, one at a time.
pub(super) struct Confined<T>(T);

// SAFETY: everything that is shared without synchronisation is inside the value and moves with it; see the
// documentation of the module.
unsafe impl<T> Send for Confined<T> {}

impl<T> Confined<T> {
    /// Builds a value from inputs that are `Send`.
    pub(super) fn make<E: Send>(make: impl FnOnce() -> Result<T, E> + Send) -> Result<Confined<T>, E> {
        make().map(Confined)
    }

    /// Calls `use_it` with the value.
    #[inline]
    pub(super) fn with<R: Send>(&mut self, use_it: impl FnOnce(&mut T) -> R + Send) -> R {
        use_it(&mut self.0)
    }

    /// Calls `look` with a shared reference to the value.
    #[inline]
    pub(super) fn look<R: Send>(&self, look: impl FnOnce(&T) -> R + Send) -> R {
        look(&self.0)
    }
}
