//! Defines the format of a study file, as the types that the TOML reader fills, and checks a file without a
//! run.

use crate::grid;
use fulgurite_base::SpecError;
use fulgurite_stack::StackError;
use fulgurite_stack::{Column, Command};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// The contents of a study file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub title: String,
    pub question: String,
    /// The labels of names and columns in the report, by name.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
    #[serde(deserialize_with = "command")]
    pub command: Command,
    #[serde(default, deserialize_with = "columns")]
    pub columns: Vec<Column>,
    pub grid: BTreeMap<String, OneOrMore>,
    #[serde(default)]
    pub quick: BTreeMap<String, OneOrMore>,
    /// Several grids, each of which overrides settings of the common grid. A file without parts has only the
    /// common grid.
    #[serde(default)]
    pub parts: Vec<Part>,
    pub compare: Option<Compare>,
    pub deviation: Option<Deviation>,
    #[serde(default)]
    pub checks: Vec<Check>,
    #[serde(default)]
    pub plots: Vec<PlotFile>,
}

/// One of several grids of a study. The column `part` of its result rows contains its name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    pub name: String,
    /// A command other than the study's. Settings of the common grid that this command does not have are
    /// ignored. `None` means the study's command.
    #[serde(default, deserialize_with = "some_command")]
    pub command: Option<Command>,
    pub grid: BTreeMap<String, OneOrMore>,
    /// The settings that `--quick` changes in this part.
    #[serde(default)]
    pub quick: BTreeMap<String, OneOrMore>,
}

/// One value or a list of values. A value is a text, a number or a size.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMore {
    // This variant must be first, because the other one accepts any value.
    More(Vec<toml::Value>),
    One(toml::Value),
}

/// A comparison of two values of an axis, for all combinations of the other axes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Compare {
    /// The name of the part whose rows are compared; `None` compares all rows.
    pub part: Option<String>,
    #[serde(deserialize_with = "column")]
    pub axis: Column,
    pub baseline: String,
    pub candidate: String,
    #[serde(deserialize_with = "column")]
    pub column: Column,
    /// A description of the compared column, for the finding.
    pub what: String,
    /// The reason why a quick run cannot tell how the column changes; `None` if it can.
    pub full: Option<String>,
}

/// A column whose values are compared with the expected values in another column.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Deviation {
    #[serde(deserialize_with = "column")]
    pub column: Column,
    #[serde(deserialize_with = "column")]
    pub expected: Column,
    /// The description of the column, and below it that of the expected value, for the finding.
    pub what: String,
    pub from: String,
}

/// A conclusion that is checked in the rows. The column, or a ratio, must be within bounds or fall along an
/// axis.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Check {
    /// The conclusion, in a sentence.
    pub says: String,
    /// The name by which plots refer to the check in `holds`.
    pub name: Option<String>,
    /// The reason why a quick run cannot tell whether the conclusion holds. With this reason, the check is
    /// skipped in quick runs.
    pub full: Option<String>,
    /// The reason why the conclusion does not hold, for a conclusion that fails.
    pub why: Option<String>,
    /// The name of the part whose rows are checked; `None` checks all rows.
    pub part: Option<String>,
    /// The values that a row must have in these columns to be checked.
    #[serde(default, rename = "where", deserialize_with = "column_keys")]
    pub only: BTreeMap<Column, String>,
    #[serde(deserialize_with = "column")]
    pub column: Column,
    /// The reason why some rows have no value in the column. With this reason, such rows are skipped. Without
    /// it, they are an error.
    pub no_value: Option<String>,
    /// The two sides of a comparison. With them, the candidate divided by the baseline is checked instead of
    /// the column itself.
    pub compare: Option<Pair>,
    /// A second column. With it, the column divided by this one is checked instead of the column itself.
    #[serde(default, deserialize_with = "some_column")]
    pub against: Option<Column>,
    pub at_least: Option<f64>,
    pub at_most: Option<f64>,
    /// Exclusive bounds: with `above = 1.0` a ratio of exactly 1 fails.
    pub above: Option<f64>,
    pub below: Option<f64>,
    /// The published figure, in the terms of the bounds. With it the check says how far the measured figures
    /// are from the published one. Without bounds, the conclusion is that a ratio differs from 1 in the
    /// published direction.
    pub published: Option<Published>,
    /// The factor within which the measured figures must be of the published one.
    pub within: Option<f64>,
    /// The axis along which the column must fall.
    #[serde(default, deserialize_with = "some_column")]
    pub falls_with: Option<Column>,
    /// The column for each of whose values the column must fall.
    #[serde(default, deserialize_with = "some_column")]
    pub for_each: Option<Column>,
    /// The column that distinguishes repetitions, such as the seed. Rows that differ only in this column are
    /// repetitions, and the bounds apply to the whole 95 % confidence interval of their mean.
    #[serde(default, deserialize_with = "some_column")]
    pub over: Option<Column>,
}

impl Check {
    fn check(&self) -> Result<(), SpecError> {
        let wrong = |why: &str| SpecError::new(format!("check `{}`{why}", self.says));
        if let Some(compare) = &self.compare {
            compare.sides().map_err(|error| wrong(&format!(": {error}")))?;
        }
        if self.published.is_some() != self.within.is_some_and(|factor| factor >= 1.0) {
            return Err(wrong(" needs `published` together with `within`, a factor of at least 1"));
        }
        let bounded = self.has_bounds() || self.published.is_some();
        let falls = self.falls_with.is_some();
        let of_bounds = self.compare.is_some() || self.over.is_some();
        match bounded == falls || falls && of_bounds || !falls && self.for_each.is_some() {
            true => Err(wrong(
                " needs either bounds (at_least, at_most, above, below, published; compare, over) or falls_with \
                 (for_each)",
            )),
            false => Ok(()),
        }
    }

    /// Whether the conclusion names bounds, besides a published figure.
    pub(super) fn has_bounds(&self) -> bool {
        [self.at_least, self.at_most, self.above, self.below].iter().any(Option::is_some)
    }
}

/// The two sides of a comparison, which are two values of an axis, or two sets of values in several columns.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pair {
    /// The axis; `None` if the sides name their columns.
    #[serde(default, deserialize_with = "some_column")]
    pub axis: Option<Column>,
    pub baseline: Side,
    pub candidate: Side,
}

/// One side of a comparison, which is a value of the axis, or values of several columns.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "baseline and candidate need a value, or a table of columns and values")]
pub(super) enum Side {
    Value(String),
    Values(#[serde(deserialize_with = "column_keys")] BTreeMap<Column, String>),
}

impl Pair {
    /// Returns the columns in which the sides differ, with the values of the baseline and of the candidate.
    /// Both sides must name the same columns.
    pub(super) fn sides(&self) -> Result<[BTreeMap<Column, String>; 2], SpecError> {
        let side = |side: &Side| match (self.axis, side) {
            (Some(axis), Side::Value(value)) => Some(BTreeMap::from([(axis, value.clone())])),
            (None, Side::Values(values)) if !values.is_empty() => Some(values.clone()),
            _ => None,
        };
        match (side(&self.baseline), side(&self.candidate)) {
            (Some(old), Some(new)) if old.keys().eq(new.keys()) => Ok([old, new]),
            _ => Err(SpecError::new(
                "compare needs an axis with two values, or two tables with the same columns; write axis = \
                 \"write_back\", baseline = \"single\" and candidate = \"ace\", or no axis and the same \
                 columns on both sides, like baseline = { users = \"1\" } and candidate = { users = \"8\" }",
            )),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlotFile {
    /// The title. `{change}` is replaced by the range of changes of a relative plot. `{best}` is replaced by
    /// the series that is best at all places, or by the best place if there is one series.
    pub title: String,
    /// The names of the checks on which the title depends. If one of these checks does not hold, or if
    /// `{best}` would be more than two names, `otherwise` is the title.
    #[serde(default)]
    pub holds: Vec<String>,
    pub otherwise: Option<String>,
    pub caption: String,
    pub kind: PlotShape,
    /// The name of the part whose rows are drawn; `None` draws all rows.
    pub part: Option<String>,
    /// The values that a row must have in these columns to be drawn.
    #[serde(default, rename = "where", deserialize_with = "column_keys")]
    pub only: BTreeMap<Column, String>,
    #[serde(deserialize_with = "column")]
    pub x: Column,
    /// The column that divides the plot into panels, one for each of its values; `None` draws a single panel.
    #[serde(default, deserialize_with = "some_column")]
    pub panels: Option<Column>,
    /// The column to draw, and below it the column that gives one series per value. A plot with `stack` has
    /// neither. Bars do not need `series`.
    #[serde(default, deserialize_with = "some_column")]
    pub y: Option<Column>,
    #[serde(default, deserialize_with = "some_column")]
    pub series: Option<Column>,
    /// The columns to stack.
    #[serde(default, deserialize_with = "columns")]
    pub stack: Vec<Column>,
    /// The baseline of relative values. It is a value of `series` or of `x`, or "first" for the first point
    /// of each series. With a baseline, the plot shows relative changes.
    pub relative_to: Option<String>,
    /// The column with expected values, which are drawn dashed.
    #[serde(default, deserialize_with = "some_column")]
    pub expected: Option<Column>,
    /// The column that distinguishes repetitions, such as the seed. Rows that differ only in this column are
    /// repetitions, and their mean is drawn.
    #[serde(default, deserialize_with = "some_column")]
    pub over: Option<Column>,
    /// The published values of y, by panel or series and then by x.
    #[serde(default)]
    pub published: BTreeMap<String, BTreeMap<String, Published>>,
    /// Whether the published values are those of a full run, so that a quick run does not draw them.
    #[serde(default)]
    pub published_of_full: bool,
    /// The sentence that says why a place has no value.
    pub no_value: Option<String>,
    /// Whether the order of the places on the x axis has a meaning. By default it has one if the places are
    /// numbers, or one name with different options.
    pub ordered: Option<bool>,
    /// Whether y is a share of a whole, which is written in percent.
    #[serde(default)]
    pub share: bool,
    pub y_label: String,
    pub x_label: Option<String>,
    #[serde(default)]
    pub log_x: bool,
    #[serde(default)]
    pub log_y: bool,
}

/// A published value, or a range of values.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Published {
    Value(f64),
    Range([f64; 2]),
}

impl Published {
    pub(super) fn range(self) -> (f64, f64) {
        match self {
            Published::Value(value) => (value, value),
            Published::Range([low, high]) => (low, high),
        }
    }

    pub(super) fn middle(self) -> f64 {
        let (low, high) = self.range();
        f64::midpoint(low, high)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PlotShape {
    Bar,
    Line,
    /// Stacked bars of several columns.
    Stack,
    /// One row of coloured cells per series. The colour of a cell shows y.
    HeatMap,
}

impl OneOrMore {
    /// Returns the values in the syntax of the command line.
    pub(super) fn texts(&self) -> Result<Vec<String>, StackError> {
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

/// Translates an error of the TOML reader into the wording of our errors.
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
    /// Parses the text `source`, which errors call `name`. Refuses all errors that can be found without a
    /// run.
    pub(super) fn parse(name: &str, source: &str) -> Result<File, StackError> {
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
        file.plots.iter().try_for_each(|plot| plot.check(&checks)).map_err(refused)?;
        file.checks.iter().try_for_each(Check::check).map_err(refused)?;
        Ok(file)
    }

    /// Whether both files request the same runs, judged by the text of their grids.
    pub(super) fn runs_like(&self, other: &File) -> bool {
        let grids = |file: &File| {
            let parts = file.parts.iter().map(|part| (&part.name, part.command, &part.grid, &part.quick));
            format!("{:?}", (file.command, &file.grid, &file.quick, parts.collect::<Vec<_>>()))
        };
        grids(self) == grids(other)
    }
}

impl PlotFile {
    /// Returns the columns that the plot uses.
    pub(super) fn columns(&self) -> impl Iterator<Item = Column> {
        let drawn = [Some(self.x), self.panels, self.y, self.series, self.expected].into_iter().flatten();
        drawn.chain(self.stack.iter().copied())
    }

    /// Checks the plot. `checks` are the names of the study's checks.
    fn check(&self, checks: &[&str]) -> Result<(), SpecError> {
        self.has_its_columns()?;
        if let Some(unknown) = self.holds.iter().find(|name| !checks.contains(&name.as_str())) {
            return Err(SpecError::unknown("check in holds", unknown, checks));
        }
        let may_be_wrong = !self.holds.is_empty() || self.title.contains("{best}");
        if may_be_wrong != self.otherwise.is_some() {
            return Err(SpecError::new(format!(
                "plot `{}` needs `otherwise` together with `holds` or with {{best}} in its title",
                self.title
            )));
        }
        let clash = match (&self.expected, self.published.is_empty()) {
            (Some(_), _) if self.relative_to.is_some() => "expected and relative_to",
            (Some(_), false) => "expected and published",
            (_, false) if self.kind == PlotShape::HeatMap => "kind = \"heat-map\" and published",
            _ => return Ok(()),
        };
        Err(SpecError::new(format!("plot `{}` has both {clash}; accepted: one of them", self.title)))
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
             with kind = \"stack\" a list `stack` of columns, without `relative_to`, `expected` and `published`",
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
    Command::of_runs(&String::deserialize(text)?).map_err(D::Error::custom)
}

fn some_command<'de, D: Deserializer<'de>>(text: D) -> Result<Option<Command>, D::Error> {
    command(text).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: an error of the TOML reader is worded like our errors and lists the accepted keys.
    #[test]
    fn an_error_of_the_reader_is_worded_like_ours() {
        let refused = |source: &str| File::parse("s.toml", source).err().unwrap().to_string();
        let whole = "title = 't'\nquestion = 'q'\ncommand = 'pool'\n";
        let said = refused(&format!("{whole}titel = 'u'\n[grid]\n"));
        assert!(said.starts_with("s.toml, line 4: unknown key `titel`; accepted: `title`, "), "{said}");
        let said = refused(&format!("{whole}[compare]\naxis = 'users'\n[grid]\n"));
        assert_eq!(said, "s.toml, line 4: missing key `baseline`");
        let said = refused("title = 't'\nquestion = 'q'\ncommand = 'serve'\n[grid]\n");
        assert!(said.starts_with("s.toml, line 3: serve is no command of a study "), "{said}");
        let said = refused(&format!("{whole}[grid]\n[[plots]]\nkind = 'pie'\n"));
        assert!(said.contains("line 6: unknown value `pie`; accepted: `bar`, "), "{said}");
    }
}
