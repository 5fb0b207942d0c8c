//! Lists the names that the command line and study files accept.

use crate::study;
use crate::table::Table;
use fulgurite_base::SpecError;
use fulgurite_stack::catalogue::{DEVICE_PARAMETERS, Item, KINDS};
use fulgurite_stack::{Column, StackError};

const STUDIES: &str = "studies";
const COLUMNS: &str = "columns";

/// The kinds of names with long lists. These are printed only if the user asks for the kind.
const LONG: [&str; 2] = [DEVICE_PARAMETERS, COLUMNS];

/// Lists the names of one kind. `None` lists those of all kinds that are not too long.
pub fn list(kind: Option<&str>) -> Result<Table, StackError> {
    let studies = || study::names().map(|(name, title)| Item::new(name, &title)).collect();
    let columns = || Column::all().map(|column| Item::new(column.name(), column.meaning())).collect();
    let own: [(&str, &dyn Fn() -> Vec<Item>); 2] = [(STUDIES, &studies), (COLUMNS, &columns)];
    let kinds: Vec<(&str, &dyn Fn() -> Vec<Item>)> =
        KINDS.iter().map(|(kind, items)| (*kind, items as _)).chain(own).collect();
    let names: Vec<&str> = kinds.iter().map(|(kind, _)| *kind).collect();
    if let Some(unknown) = kind.filter(|kind| !names.contains(kind)) {
        return Err(SpecError::unknown("list", unknown, &names).into());
    }
    let is_asked = |name: &str| kind.map_or(!LONG.contains(&name), |kind| kind == name);
    let mut table = Table::default();
    for (kind, items) in kinds.into_iter().filter(|(name, _)| is_asked(name)) {
        for Item { mut row, .. } in items() {
            row.set(Column::Kind, kind);
            table.rows.push(row);
        }
    }
    Ok(table)
}
