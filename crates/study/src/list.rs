//! Every name that the command line and study files know, as a table.

use crate::study;
use crate::table::Table;
use fulgurite_base::SpecError;
use fulgurite_stack::catalogue::{self, DEVICE_PARAMETERS, KINDS};
use fulgurite_stack::{Column, Row, StackError};

const STUDIES: &str = "studies";

/// The names of one kind, or of all.
pub fn list(kind: Option<&str>) -> Result<Table, StackError> {
    let studies = || study::names().map(|(name, title)| catalogue::row(name, &title)).collect();
    let kinds: Vec<(&str, &dyn Fn() -> Vec<Row>)> =
        KINDS.iter().map(|(kind, rows)| (*kind, rows as _)).chain([(STUDIES, &studies as _)]).collect();
    let names: Vec<&str> = kinds.iter().map(|(kind, _)| *kind).collect();
    if let Some(unknown) = kind.filter(|kind| !names.contains(kind)) {
        return Err(SpecError::unknown("list", unknown, &names).into());
    }
    let is_asked = |name: &str| kind.map_or(name != DEVICE_PARAMETERS, |kind| kind == name);
    let mut table = Table::default();
    for (kind, rows) in kinds.into_iter().filter(|(name, _)| is_asked(name)) {
        for mut row in rows() {
            row.set(Column::Kind, kind);
            table.rows.push(row);
        }
    }
    Ok(table)
}
