//! Defines the result of a command over a store.

use fulgurite_stack::{Row, StackError};

/// The result of a command over a store.
#[derive(Debug)]
pub struct Report {
    /// The result rows, for programs.
    pub rows: Vec<Row>,
    /// The result in sentences for people; `None` if the table of rows is as clear.
    pub text: Option<String>,
    /// Whether the store is sound and nothing is lost. The command reports an error here after the rows and
    /// the text.
    pub verdict: Result<(), StackError>,
}
