//! Tests of the benchmark programs, in one program: each program would compile the store anew.

mod common;
mod driver;
mod index_scan;
mod linkbench;
mod sysbench;
mod tpcc;
mod ycsb;
