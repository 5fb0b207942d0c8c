//! Reads one record of a table.

use crate::open::{StoreFile, read_key};
use crate::scan::{Form, Writer};
use crate::text;
use fulgurite_stack::StackError;

/// A record that was read from a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The key of the record, as text with escapes.
    pub key: String,
    /// The value of the record, byte for byte.
    pub bytes: Vec<u8>,
}

impl Value {
    /// Returns the value as text with escapes.
    pub fn text(&self) -> String {
        text::escape(&self.bytes)
    }

    /// Formats the record as a scan does.
    pub fn written(&self, form: Form) -> Result<Vec<u8>, StackError> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(form, &mut bytes);
        let written = writer.write(&self.key, &self.text()).and_then(|()| writer.finish());
        written.map(|()| bytes).map_err(StackError::run)
    }
}

/// Reads the value of `key` in `table`. The key is text with escapes.
pub fn get(file: &StoreFile, table: &str, key: &str) -> Result<Value, StackError> {
    let bytes = read_key("KEY", key)?;
    let opened = file.open_to_read()?;
    let (file, table) = (file.clone(), table.to_owned());
    let task = async move {
        let found = file.table(&opened.store, &table).await?;
        let value = opened.store.snapshot().get(found, &bytes).await;
        let value = value.map_err(|error| file.failed(&error))?;
        let missing = || {
            let (key, path) = (text::escape(&bytes), file.path.display());
            StackError::run(format!("the key `{key}` is not in table {table} of {path}"))
        };
        value.map(|value| Value { key: text::escape(&bytes), bytes: value }).ok_or_else(missing)
    };
    opened.executor.block_on(task).map_err(StackError::run)?
}
