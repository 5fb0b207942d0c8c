//! The result of a command over a store.

use fulgurite_stack::{Row, StackError};

/// The result of a command.
#[derive(Debug)]
pub struct Report {
    /// For programs.
    pub rows: Vec<Row>,
    /// For people, if sentences are clearer than a table.
    pub text: Option<String>,
    /// Whether the store is sound and nothing is lost; the command reports it after the rest.
    pub verdict: Result<(), StackError>,
}
