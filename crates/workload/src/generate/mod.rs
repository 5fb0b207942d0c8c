//! Synthetic workloads by name.
//!
//! A [`GeneratorConfig`] is the description of one workload, and lists all of them. A [`Generator`] is an
//! endless iterator of the requests of a workload, mostly for one page and without times. It is a pure
//! function of the description, the number of pages and the seed. A generator uses only integers, the basic
//! arithmetic of IEEE 754 and `libm`, so its requests are the same on every machine.
//!
//! To add a workload, write a file here with a `Recipe` and a `RequestSource`, and add a line to
//! `generators!` in `config.rs`.

mod alias;
mod bursts;
mod draw;
mod power_sum;
mod scatter;
mod tables;
mod two_class;
pub mod zipf;
mod generator;
mod recipe;
mod blocks;
mod file_system;
mod irregular;
mod linkbench;
mod popular;
mod skewed;
mod sysbench;
mod timed;
mod tpcc;
mod flash_cache;
mod lsm;
mod varmail;
mod ycsb;
mod config;

pub use config::GeneratorConfig;
pub use generator::Generator;

#[cfg(test)]
mod tests;
