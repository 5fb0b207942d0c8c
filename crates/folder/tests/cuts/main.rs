//! Power cuts: scenarios with their outcomes, and random operations against a slow, obvious model.

mod script;
mod model;

mod random;
mod scenarios;
