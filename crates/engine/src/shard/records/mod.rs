//! Work on the record cache: merging its records into leaves, carrying them along in the log, lending it
//! frames of the pool.

mod frames;
mod merge;
mod carry;
