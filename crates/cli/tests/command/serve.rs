//! Tests `fulgurite serve` with the programs for which it is made: NBD clients, file systems and databases.
//!
//! Each test serves a drive of its own. A program that is not installed fails the test.

mod client;
mod drive;
mod ext4;

mod contents;
mod control;
mod ends;
mod examples;
mod file;
mod hostile;
mod http;
mod nbd;
mod pace;
mod pool;
mod power;
mod refusals;
mod sqlite;
