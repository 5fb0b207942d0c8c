//! The protocol under random schedules.

mod model;
mod schedules;
