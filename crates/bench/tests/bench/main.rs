//! Tests of the benchmark programs, in one binary, because each further binary would compile the store again.

mod common;
mod driver;
mod index_scan;
mod linkbench;
mod sysbench;
mod tpcc;
mod ycsb;
