//! Synthetic workloads by name. [`GeneratorConfig`] describes one and lists all of them. [`Generator`] is one at
//! work, an endless iterator of requests, most of one page and without times. It is a pure function of the
//! description, the pages and the seed. It uses integers, IEEE 754 basic arithmetic and `libm` only, so the
//! stream is the same on every machine.
//!
//! To add one: a file here, with a [`Recipe`] and a [`RequestSource`], and a line of `generators!`.

mod alias;
mod blocks;
mod bursts;
mod config;
mod draw;
mod file_system;
mod generator;
mod irregular;
mod linkbench;
mod popular;
mod power_sum;
mod recipe;
mod scatter;
mod skewed;
mod sysbench;
mod tables;
mod timed;
mod tpcc;
mod two_class;
mod varmail;
mod ycsb;
pub mod zipf;

pub use config::GeneratorConfig;
pub use generator::Generator;

#[cfg(test)]
mod tests;
