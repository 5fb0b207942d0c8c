//! Policies that a user of this crate writes. They work beside the policies that have names here.

use std::fmt;
use std::sync::Arc;

/// A policy's name and how to make it. It is equal to its own clones and to nothing else.
pub struct Custom<M> {
    name: Arc<str>,
    make: Arc<M>,
}

impl<M> Custom<M> {
    pub(crate) fn new(name: &str, make: M) -> Custom<M> {
        Custom { name: name.into(), make: Arc::new(make) }
    }

    /// What tables and run ids call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn make(&self) -> &M {
        &self.make
    }
}

// Written by hand: what `derive` makes would ask the same of `M`, which is a function.
impl<M> Clone for Custom<M> {
    fn clone(&self) -> Custom<M> {
        Custom { name: self.name.clone(), make: self.make.clone() }
    }
}

impl<M> PartialEq for Custom<M> {
    fn eq(&self, other: &Custom<M>) -> bool {
        Arc::ptr_eq(&self.make, &other.make)
    }
}

impl<M> Eq for Custom<M> {}

impl<M> fmt::Debug for Custom<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Custom({})", self.name)
    }
}
