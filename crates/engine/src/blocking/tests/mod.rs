//! Tests of the driving protocol under random schedules.

mod fairness;
mod model;
mod schedules;
