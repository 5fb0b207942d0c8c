//! Synthetic workloads by name. A [`GeneratorConfig`] is the description of one, and lists all of them. A
//! [`Generator`] is an endless iterator of its requests, mostly for one page and without times. It is a pure
//! function of the description, the number of pages and the seed. It uses only integers, IEEE 754 basic
//! arithmetic and `libm`, so the stream is the same on every machine.
//!
//! A new workload is a file here with a `Recipe` and a `RequestSource`, and a line of `generators!` in
//! `config.rs`.

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
mod varmail;
mod ycsb;
mod config;

pub use config::GeneratorConfig;
pub use generator::Generator;

#[cfg(test)]
mod tests;
