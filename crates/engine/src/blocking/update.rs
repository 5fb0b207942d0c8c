//! Changes of a single record that depend on its value.

use super::db::{Db, Table};
use crate::Error;

impl Db {
    /// Changes a record in a transaction of its own, and returns its new value. `change` gets the value of the key, and
    /// returns the new one; `None` means that the key has none. It may be called several times, because an aborted
    /// transaction is repeated.
    pub fn update(
        &self,
        table: &Table,
        key: &[u8],
        mut change: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>, Error> {
        self.transact(|transaction| {
            let old = transaction.get_for_update(table, key)?;
            let new = change(old.as_deref());
            match &new {
                Some(value) if old.as_ref() != Some(value) => transaction.put(table, key, value)?,
                None if old.is_some() => transaction.delete(table, key)?,
                _ => {}
            }
            Ok(new)
        })
    }

    /// Gives a key the value `new` if its value is `expected`; `None` means that the key has none. Returns whether it
    /// was.
    pub fn compare_and_swap(
        &self,
        table: &Table,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, Error> {
        let mut is_expected = false;
        self.update(table, key, |old| {
            is_expected = old == expected;
            let value = if is_expected { new } else { old };
            value.map(<[u8]>::to_vec)
        })?;
        Ok(is_expected)
    }
}
