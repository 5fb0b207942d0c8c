//! Operations on the record cache: merging its records into leaves, copying them forward in the log, and
//! lending it frames of the pool.

mod frames;
mod merge;
mod append;
mod carry;
