//! Tests the `fulgurite` command as users start it.

mod advise;
mod bad_input;
mod bench;
mod book;
mod contract;
mod cuts;
mod diff;
mod folder;
mod help;
mod honest;
mod hostile;
mod interrupts;
mod outlook;
mod outputs;
mod progress;
mod repeatable;
mod report;
mod resume;
mod several_files;
mod store;
mod streams;
mod suites;
mod terminal;
mod trace_info;
mod which_drive;
mod words;
