//! The protocol under random schedules.

mod fairness;
mod model;
mod schedules;
