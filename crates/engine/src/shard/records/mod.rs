//! The record cache at work: its records are merged into leaves, carried along in the log, and lent frames of the pool.

mod frames;
mod merge;
mod carry;
