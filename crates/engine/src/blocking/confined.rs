//! Single-threaded values that one thread after the other uses. This file is the only one of the module with `unsafe`.
//!
//! A shard's executor and store are made of `Rc`, `Cell` and `RefCell`. The compiler keeps such values on one thread,
//! because two clones of one `Rc` on two threads would count without a lock. That cannot happen to a [`Confined`] value:
//!
//! 1. *Everything that is shared is inside.* The value is made by [`Confined::make`] from what may move between threads.
//!    So at the beginning every `Rc` is one that `make` has made, and all clones of it are inside.
//! 2. *Nothing gets out.* The value is used by [`Confined::with`] alone. What goes in (the closure) and what comes out (its
//!    result) is `Send`, so neither can be, or hold, a clone of an inner `Rc`, or a reference into the value.
//! 3. *One thread at a time.* `with` takes `&mut self`. A `Confined` is not `Sync`; it lies in a mutex, whose lock orders what
//!    one thread did before what the next one does.
//! 4. *No hidden ways.* The type system does not see thread-local variables, where a closure could leave a clone. None of
//!    the closures of this module does. Code of the user that runs inside is of three kinds, and none can have a clone of
//!    an inner `Rc`: devices, which are `Send` themselves; policies of the pool, which are `Send`; and functions that name
//!    index keys, which are `Send` and `Sync` and see bytes only.
//! 5. *No home.* Nothing inside depends on the thread that made it: the wakers of the executor are made of `Arc`, and a
//!    device that is bound to its thread is refused.
//!
//! For the same reasons the value may be dropped on any thread.

#![allow(unsafe_code)]

/// A value that is used by one thread at a time, and by any.
pub struct Confined<T>(T);

// SAFETY: see the module: all that shares without a lock is inside the value and moves with it.
unsafe impl<T> Send for Confined<T> {}

impl<T> Confined<T> {
    /// Makes a value from what may move between threads.
    pub fn make<E: Send>(make: impl FnOnce() -> Result<T, E> + Send) -> Result<Confined<T>, E> {
        make().map(Confined)
    }

    /// Uses the value.
    #[inline]
    pub fn with<R: Send>(&mut self, use_it: impl FnOnce(&mut T) -> R + Send) -> R {
        use_it(&mut self.0)
    }

    /// Looks at the value.
    #[inline]
    pub fn look<R: Send>(&self, look: impl FnOnce(&T) -> R + Send) -> R {
        look(&self.0)
    }
}
