//! What a study file holds, word for word.

use crate::error::StudyError;
use crate::{grid, table};
use fulgurite_base::SpecError;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A study as it is written down.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub title: String,
    pub question: String,
    pub command: grid::Command,
    #[serde(default)]
    pub columns: Vec<String>,
    pub grid: BTreeMap<String, OneOrMore>,
    #[serde(default)]
    pub quick: BTreeMap<String, OneOrMore>,
    /// Several grids, each on top of the common one; without any the common one is all.
    #[serde(default)]
    pub parts: Vec<Part>,
    pub compare: Option<Compare>,
    pub deviation: Option<Deviation>,
    #[serde(default)]
    pub plots: Vec<PlotFile>,
}

/// One grid of several, named in the column `part`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    pub name: String,
    pub grid: BTreeMap<String, OneOrMore>,
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
    pub axis: String,
    pub baseline: String,
    pub candidate: String,
    pub column: String,
    /// What the column is, in words.
    pub what: String,
}

/// A column beside what it should be.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Deviation {
    pub column: String,
    pub expected: String,
    /// What the column is, and what the other, in words.
    pub what: String,
    pub from: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlotFile {
    pub title: String,
    pub caption: String,
    pub kind: Kind,
    /// Only rows of this part.
    pub part: Option<String>,
    /// Only rows that have these values in these columns.
    #[serde(default, rename = "where")]
    pub only: BTreeMap<String, String>,
    pub x: String,
    pub y: String,
    pub series: String,
    /// A value of `series` to divide by, or "first": each series by its own first point.
    pub relative_to: Option<String>,
    /// The column of what y should be, drawn dashed.
    pub expected: Option<String>,
    pub y_label: String,
    pub x_label: Option<String>,
    #[serde(default)]
    pub log_x: bool,
    #[serde(default)]
    pub log_y: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    Bar,
    Line,
}

impl OneOrMore {
    /// The values as they would be typed on the command line.
    pub fn texts(&self) -> Result<Vec<String>, StudyError> {
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

impl File {
    /// Reads `source`, which errors call `name`. What can be wrong without running is found here.
    pub fn parse(name: &str, source: &str) -> Result<File, StudyError> {
        let file: File = toml::from_str(source).map_err(|error| {
            let line = error
                .span()
                .map_or(1, |span| 1 + source[..span.start.min(source.len())].matches('\n').count());
            let message = error.message().lines().collect::<Vec<_>>().join(" ");
            StudyError::request(format!("{name}, line {line}: {message}"))
        })?;
        let refused = |error: SpecError| StudyError::request(format!("{name}: {error}"));
        for column in file.columns_named() {
            if !table::ORDER.contains(&column.as_str()) {
                return Err(refused(SpecError::unknown("column", column, table::ORDER)));
            }
        }
        let parts: Vec<&str> = file.parts.iter().map(|part| part.name.as_str()).collect();
        let named =
            file.plots.iter().map(|plot| &plot.part).chain(file.compare.iter().map(|compare| &compare.part));
        if let Some(unknown) = named.flatten().find(|part| !parts.contains(&part.as_str())) {
            return Err(refused(SpecError::unknown("part", unknown, &parts)));
        }
        if let Some(plot) =
            file.plots.iter().find(|plot| plot.expected.is_some() && plot.relative_to.is_some())
        {
            return Err(refused(SpecError::new(format!(
                "plot `{}` has both expected and relative_to; accepted: one of them",
                plot.title
            ))));
        }
        Ok(file)
    }

    fn columns_named(&self) -> impl Iterator<Item = &String> {
        let compared = self.compare.iter().flat_map(|compare| [&compare.axis, &compare.column]);
        let deviation = self.deviation.iter().flat_map(|deviation| [&deviation.column, &deviation.expected]);
        let plotted = self
            .plots
            .iter()
            .flat_map(|plot| [&plot.x, &plot.y, &plot.series].into_iter().chain(&plot.expected));
        self.columns.iter().chain(compared).chain(deviation).chain(plotted)
    }
}
