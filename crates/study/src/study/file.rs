//! The contents of a study file.

use crate::grid;
use fulgurite_base::{SpecError, option};
use fulgurite_stack::StackError;
use fulgurite_stack::{Column, Command};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// A study as it is written down.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub title: String,
    pub question: String,
    /// What names of the rows, and of columns, are called on the page.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
    #[serde(deserialize_with = "command")]
    pub command: Command,
    #[serde(default, deserialize_with = "columns")]
    pub columns: Vec<Column>,
    pub grid: BTreeMap<String, OneOrMore>,
    #[serde(default)]
    pub quick: BTreeMap<String, OneOrMore>,
    /// Several grids, each on top of the common one; without any the common one is all.
    #[serde(default)]
    pub parts: Vec<Part>,
    pub compare: Option<Compare>,
    pub deviation: Option<Deviation>,
    #[serde(default)]
    pub checks: Vec<Check>,
    #[serde(default)]
    pub plots: Vec<PlotFile>,
}

/// One grid of several, named in the column `part`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    pub name: String,
    /// Another command than the study's; of the common grid only what it knows applies.
    #[serde(default, deserialize_with = "some_command")]
    pub command: Option<Command>,
    pub grid: BTreeMap<String, OneOrMore>,
    /// What `--quick` changes of it.
    #[serde(default)]
    pub quick: BTreeMap<String, OneOrMore>,
}

/// A value or a list of them, each text, a number or a size.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMore {
    // First, since the other takes anything.
    More(Vec<toml::Value>),
    One(toml::Value),
}

/// Two values of an axis, to be compared wherever everything else is equal.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Compare {
    /// Only rows of this part.
    pub part: Option<String>,
    #[serde(deserialize_with = "column")]
    pub axis: Column,
    pub baseline: String,
    pub candidate: String,
    #[serde(deserialize_with = "column")]
    pub column: Column,
    /// What the column is, in words.
    pub what: String,
    /// Why a quick run cannot tell.
    pub full: Option<String>,
}

/// A column beside what it should be.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Deviation {
    #[serde(deserialize_with = "column")]
    pub column: Column,
    #[serde(deserialize_with = "column")]
    pub expected: Column,
    /// What the column is, and what the other, in words.
    pub what: String,
    pub from: String,
}

/// A conclusion that should show in the rows: a column, or how it compares, between bounds, or falling.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Check {
    /// The conclusion, in a sentence.
    pub says: String,
    /// What plots call it that say in their title what it says.
    pub name: Option<String>,
    /// Why a quick run cannot tell; it is then not asked.
    pub full: Option<String>,
    /// Why it does not hold, where it does not.
    pub why: Option<String>,
    /// Only rows of this part.
    pub part: Option<String>,
    /// Only rows that have these values in these columns.
    #[serde(default, rename = "where", deserialize_with = "column_keys")]
    pub only: BTreeMap<Column, String>,
    #[serde(deserialize_with = "column")]
    pub column: Column,
    /// Why some of these rows have nothing in the column: they are left out. Without this they are refused.
    pub no_value: Option<String>,
    /// The candidate's column over the baseline's, in place of the column itself.
    pub compare: Option<Pair>,
    /// The column over this one, in place of the column itself.
    #[serde(default, deserialize_with = "some_column")]
    pub against: Option<Column>,
    pub at_least: Option<f64>,
    pub at_most: Option<f64>,
    /// The same without the bound itself: `above = 1.0` of a comparison is not met by no change.
    pub above: Option<f64>,
    pub below: Option<f64>,
    /// The column falls as this one rises.
    #[serde(default, deserialize_with = "some_column")]
    pub falls_with: Option<Column>,
    /// It does so for each value of this column.
    #[serde(default, deserialize_with = "some_column")]
    pub for_each: Option<Column>,
    /// Rows that differ in this column alone, such as the seed, are repetitions: the bounds are for their mean, and
    /// must hold for all of its interval of 95 % confidence.
    #[serde(default, deserialize_with = "some_column")]
    pub over: Option<Column>,
}

/// Two values of an axis, or two sides that differ in several columns.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pair {
    /// The axis; left out where the sides name their columns.
    #[serde(default, deserialize_with = "some_column")]
    pub axis: Option<Column>,
    pub baseline: Side,
    pub candidate: Side,
}

/// One side of a comparison: a value of the axis, or values of several columns.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "baseline and candidate need a value, or a table of columns and values")]
pub(super) enum Side {
    Value(String),
    Values(#[serde(deserialize_with = "column_keys")] BTreeMap<Column, String>),
}

impl Pair {
    /// The columns in which the sides differ, with the values of the baseline and of the candidate. Fails where one
    /// names other columns than the other.
    pub fn sides(&self) -> Result<[BTreeMap<Column, String>; 2], SpecError> {
        let side = |side: &Side| match (self.axis, side) {
            (Some(axis), Side::Value(value)) => Some(BTreeMap::from([(axis, value.clone())])),
            (None, Side::Values(values)) if !values.is_empty() => Some(values.clone()),
            _ => None,
        };
        match (side(&self.baseline), side(&self.candidate)) {
            (Some(old), Some(new)) if old.keys().eq(new.keys()) => Ok([old, new]),
            _ => Err(SpecError::new(
                "compare does not say what to compare; write axis = \"write_back\", baseline = \"single\" and candidate = \"ace\", or no axis and the same columns on both sides, like baseline = { users = \"1\" } and candidate = { users = \"8\" }",
            )),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlotFile {
    /// What is seen. `{change}` stands for how far a relative plot's values are from zero,
    /// `{best}` for the best series of every place, or the best place of one series.
    pub title: String,
    /// The checks that must hold for the title to be true, and the title where one of them does not, or where
    /// `{best}` would be three names or more.
    #[serde(default)]
    pub holds: Vec<String>,
    pub otherwise: Option<String>,
    pub caption: String,
    pub kind: PlotShape,
    /// Only rows of this part.
    pub part: Option<String>,
    /// Only rows that have these values in these columns.
    #[serde(default, rename = "where", deserialize_with = "column_keys")]
    pub only: BTreeMap<Column, String>,
    #[serde(deserialize_with = "column")]
    pub x: Column,
    /// A picture for each value of this column.
    #[serde(default, deserialize_with = "some_column")]
    pub panels: Option<Column>,
    /// What is drawn, and the column whose values are told apart; not with `stack`. Bars may do without `series`.
    #[serde(default, deserialize_with = "some_column")]
    pub y: Option<Column>,
    #[serde(default, deserialize_with = "some_column")]
    pub series: Option<Column>,
    /// The columns to pile on one another.
    #[serde(default, deserialize_with = "columns")]
    pub stack: Vec<Column>,
    /// A value of `series` or of `x` to divide by, or "first": each series by its own first point.
    /// Changes are drawn, from zero.
    pub relative_to: Option<String>,
    /// The column of what y should be, drawn dashed.
    #[serde(default, deserialize_with = "some_column")]
    pub expected: Option<Column>,
    /// Rows that differ in this column alone, such as the seed, are repetitions: their mean is drawn.
    #[serde(default, deserialize_with = "some_column")]
    pub over: Option<Column>,
    /// What was published for y: by panel or by series, by x.
    #[serde(default)]
    pub published: BTreeMap<String, BTreeMap<String, Published>>,
    /// Published values have the size of a full run, so a quick one does not show them.
    #[serde(default)]
    pub published_of_full: bool,
    /// What it means if a place has no value.
    pub no_value: Option<String>,
    /// Whether the order of the places has a meaning; by default where they are numbers or differ in options alone.
    pub ordered: Option<bool>,
    /// Whether y is a part of a whole, written in percent.
    #[serde(default)]
    pub share: bool,
    pub y_label: String,
    pub x_label: Option<String>,
    #[serde(default)]
    pub log_x: bool,
    #[serde(default)]
    pub log_y: bool,
}

/// A published value, or the least and the greatest.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Published {
    Value(f64),
    Range([f64; 2]),
}

impl Published {
    pub fn range(self) -> (f64, f64) {
        match self {
            Published::Value(value) => (value, value),
            Published::Range([low, high]) => (low, high),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PlotShape {
    Bar,
    Line,
    /// Bars of several columns on one another.
    Stack,
    /// The series one below the other, y as the colour.
    HeatMap,
}

impl OneOrMore {
    /// The values as they would be typed on the command line.
    pub fn texts(&self) -> Result<Vec<String>, StackError> {
        let values = match self {
            OneOrMore::One(value) => std::slice::from_ref(value),
            OneOrMore::More(values) => values,
        };
        let mut texts = Vec::new();
        for value in values {
            texts.extend(value.as_str().map_or_else(|| Ok(vec![value.to_string()]), grid::values)?);
        }
        Ok(texts)
    }
}

/// What the TOML reader found wrong, in the words of all refusals.
fn in_our_words(message: &str) -> String {
    let words = [
        ("unknown field", "unknown key"),
        ("missing field", "missing key"),
        ("unknown variant", "unknown value"),
        (", expected one of ", "; accepted: "),
        (", expected ", "; accepted: "),
    ];
    let message = message.lines().collect::<Vec<_>>().join(" ");
    words.iter().fold(message, |message, (theirs, ours)| message.replace(theirs, ours))
}

impl File {
    /// Reads `source`, which errors call `name`. What can be wrong without running is found here.
    pub fn parse(name: &str, source: &str) -> Result<File, StackError> {
        let file: File = toml::from_str(source).map_err(|error| {
            let line = error
                .span()
                .map_or(1, |span| 1 + source[..span.start.min(source.len())].matches('\n').count());
            StackError::request(format!("{name}, line {line}: {}", in_our_words(error.message())))
        })?;
        let refused = |error: SpecError| StackError::request(format!("{name}: {error}"));
        let parts: Vec<&str> = file.parts.iter().map(|part| part.name.as_str()).collect();
        let named = file.plots.iter().map(|plot| &plot.part);
        let named = named.chain(file.compare.iter().map(|compare| &compare.part));
        let named = named.chain(file.checks.iter().map(|check| &check.part));
        if let Some(unknown) = named.flatten().find(|part| !parts.contains(&part.as_str())) {
            return Err(refused(SpecError::unknown("part", unknown, &parts)));
        }
        let checks: Vec<&str> = file.checks.iter().filter_map(|check| check.name.as_deref()).collect();
        for plot in &file.plots {
            plot.has_its_columns().map_err(refused)?;
            if let Some(unknown) = plot.holds.iter().find(|name| !checks.contains(&name.as_str())) {
                return Err(refused(SpecError::unknown("check in holds", unknown, &checks)));
            }
            let may_be_wrong = !plot.holds.is_empty() || plot.title.contains("{best}");
            if may_be_wrong != plot.otherwise.is_some() {
                let sentence = format!(
                    "plot `{}` needs `otherwise` together with `holds` or with {{best}} in its title",
                    plot.title
                );
                return Err(refused(SpecError::new(sentence)));
            }
            let clash = match (&plot.expected, plot.published.is_empty()) {
                (Some(_), _) if plot.relative_to.is_some() => "expected and relative_to",
                (Some(_), false) => "expected and published",
                (_, false) if plot.kind == PlotShape::HeatMap => "kind = \"heat-map\" and published",
                _ => continue,
            };
            let sentence = format!("plot `{}` has both {clash}; accepted: one of them", plot.title);
            return Err(refused(SpecError::new(sentence)));
        }
        for check in &file.checks {
            check
                .compare
                .as_ref()
                .map(Pair::sides)
                .transpose()
                .map_err(|error| refused(SpecError::new(format!("check `{}`: {error}", check.says))))?;
            let bounds = [check.at_least, check.at_most, check.above, check.below];
            let bounded = bounds.iter().any(Option::is_some);
            let falls = check.falls_with.is_some();
            let of_bounds = check.compare.is_some() || check.over.is_some();
            if bounded == falls || falls && of_bounds || !falls && check.for_each.is_some() {
                return Err(refused(SpecError::new(format!(
                    "check `{}` needs either bounds (at_least, at_most, above, below; compare, over) or falls_with (for_each)",
                    check.says
                ))));
            }
        }
        Ok(file)
    }
}

impl File {
    /// Whether it asks for the same runs as `other`, by the words of its grids.
    pub fn runs_like(&self, other: &File) -> bool {
        let grids = |file: &File| {
            let parts = file.parts.iter().map(|part| (&part.name, part.command, &part.grid, &part.quick));
            format!("{:?}", (file.command, &file.grid, &file.quick, parts.collect::<Vec<_>>()))
        };
        grids(self) == grids(other)
    }
}

impl PlotFile {
    /// The columns that it names.
    pub fn columns(&self) -> impl Iterator<Item = Column> {
        let drawn = [Some(self.x), self.panels, self.y, self.series, self.expected].into_iter().flatten();
        drawn.chain(self.stack.iter().copied())
    }

    fn has_its_columns(&self) -> Result<(), SpecError> {
        let stacked = !self.stack.is_empty();
        let fits = match self.kind {
            PlotShape::Stack => stacked && self.y.is_none() && self.series.is_none(),
            PlotShape::Bar => self.y.is_some() && !stacked,
            _ => self.y.is_some() && self.series.is_some() && self.panels.is_none() && !stacked,
        };
        let plain = self.relative_to.is_none() && self.expected.is_none() && self.published.is_empty();
        if fits && (plain || !stacked) {
            return Ok(());
        }
        Err(SpecError::new(format!(
            "plot `{}`: accepted: `y` and `series`; with kind = \"bar\" `y`, and `series` or `panels` or both; \
             with kind = \"stack\" a list `stack` of columns and nothing to compare with",
            self.title
        )))
    }
}

fn column<'de, D: Deserializer<'de>>(text: D) -> Result<Column, D::Error> {
    Column::from_name(&String::deserialize(text)?).map_err(D::Error::custom)
}

fn some_column<'de, D: Deserializer<'de>>(text: D) -> Result<Option<Column>, D::Error> {
    column(text).map(Some)
}

fn columns<'de, D: Deserializer<'de>>(texts: D) -> Result<Vec<Column>, D::Error> {
    let names = Vec::<String>::deserialize(texts)?;
    names.iter().map(|name| Column::from_name(name).map_err(D::Error::custom)).collect()
}

fn column_keys<'de, D: Deserializer<'de>>(map: D) -> Result<BTreeMap<Column, String>, D::Error> {
    let texts = BTreeMap::<String, String>::deserialize(map)?;
    let typed = texts.into_iter().map(|(name, value)| Ok((Column::from_name(&name)?, value)));
    typed.collect::<Result<_, SpecError>>().map_err(D::Error::custom)
}

fn command<'de, D: Deserializer<'de>>(text: D) -> Result<Command, D::Error> {
    option::parse_choice(&String::deserialize(text)?).map_err(D::Error::custom)
}

fn some_command<'de, D: Deserializer<'de>>(text: D) -> Result<Option<Command>, D::Error> {
    command(text).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: what the TOML reader refuses is told in the words of all refusals, with what is accepted.
    #[test]
    fn a_refusal_of_the_reader_has_our_words() {
        let refused = |source: &str| File::parse("s.toml", source).err().unwrap().to_string();
        let whole = "title = 't'\nquestion = 'q'\ncommand = 'pool'\n";
        let said = refused(&format!("{whole}titel = 'u'\n[grid]\n"));
        assert!(said.starts_with("s.toml, line 4: unknown key `titel`; accepted: `title`, "), "{said}");
        let said = refused(&format!("{whole}[compare]\naxis = 'users'\n[grid]\n"));
        assert_eq!(said, "s.toml, line 4: missing key `baseline`");
        let said = refused(&format!("{whole}[grid]\n[[plots]]\nkind = 'pie'\n"));
        assert!(said.contains("line 6: unknown value `pie`; accepted: `bar`, "), "{said}");
    }
}
