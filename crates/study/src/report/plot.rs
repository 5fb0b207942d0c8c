//! A plot as data: what the page's script draws, and the table of its numbers.

use super::form::{Form, Scale};
use fulgurite_stack::{Unit, Value};
use serde_json::json;
use std::cmp::Ordering;

/// A picture.
#[derive(Clone, Debug)]
pub struct Plot {
    /// What is seen in it, in a sentence.
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// Its shape.
    pub kind: PlotKind,
    /// The quantity on the x axis.
    pub x_label: String,
    /// The quantity on the y axis, without its unit.
    pub y_label: String,
    /// Whether the x axis is logarithmic.
    pub log_x: bool,
    /// Whether the y axis is logarithmic.
    pub log_y: bool,
    /// What the values of y are, so that they are written readably.
    pub scale: Scale,
    /// The same for x.
    pub x_unit: Unit,
    /// Where expected values come from, in a word.
    pub expected_is: &'static str,
    /// What a change of zero stands for.
    pub zero_is: Option<String>,
    /// Which of two values is the better one, where one is.
    pub better: Option<Ordering>,
    /// Whether the order of the places has a meaning; otherwise they are sorted by value.
    pub is_ordered: bool,
    /// What a place without a value means.
    pub no_value: String,
    /// Whether the colour belongs to the place and not to the series.
    pub colours_places: bool,
    /// The pictures side by side, all to one scale.
    pub panels: Vec<Panel>,
}

/// One of the pictures of a plot.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// What sets it apart from the others.
    pub title: Option<String>,
    /// The places on the x axis.
    pub x: Vec<Place>,
    /// What is drawn over them.
    pub series: Vec<Series>,
}

/// A place on the x axis.
#[derive(Clone, Debug)]
pub struct Place {
    /// The value in its column.
    pub value: Value,
    /// What it is called on the page.
    pub name: String,
}

/// One line, or the bars of one colour.
#[derive(Clone, Debug)]
pub struct Series {
    /// What it stands for, word for word: the same key has the same colour in the whole report.
    pub key: String,
    /// What it is called on the page.
    pub name: String,
    /// A value for every x, where there is one.
    pub values: Vec<Option<f64>>,
    /// The same for what theory says, or a paper: the least and the greatest.
    pub expected: Option<Vec<Option<(f64, f64)>>>,
}

/// The shape of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlotKind {
    /// Bars, the places one below the other.
    Bar,
    /// Lines over numbers.
    Line,
    /// Bars on one another.
    Stack,
    /// A coloured field for every x and series.
    HeatMap,
}

impl PlotKind {
    fn name(self) -> &'static str {
        match self {
            PlotKind::Bar => "bar",
            PlotKind::Line => "line",
            PlotKind::Stack => "stack",
            PlotKind::HeatMap => "heatmap",
        }
    }
}

impl Plot {
    /// The heads of the table under the picture.
    pub fn heads(&self) -> Vec<String> {
        let panels = self.panels.iter().any(|panel| panel.title.is_some()).then(String::new);
        let series = self.panels.first().map_or(&[][..], |panel| &panel.series);
        let named = series.iter().flat_map(|series| {
            let expected = series.expected.as_ref().map(|_| format!("{}, {}", series.name, self.expected_is));
            [Some(series.name.clone()), expected].into_iter().flatten()
        });
        panels.into_iter().chain([self.x_label.clone()]).chain(named).collect()
    }

    /// The table under the picture: a place on the x axis, and what every series has there.
    pub fn numbers(&self) -> Vec<Vec<String>> {
        self.panels.iter().flat_map(|panel| (0..panel.x.len()).map(|at| self.line(panel, at))).collect()
    }

    fn line(&self, panel: &Panel, at: usize) -> Vec<String> {
        let form = self.form();
        let number = |value: f64| form.in_table(value);
        let none = || "–".to_owned();
        let mut line: Vec<String> = panel.title.iter().cloned().collect();
        line.push(panel.x[at].name.clone());
        for series in &panel.series {
            line.push(series.values[at].map_or_else(none, number));
            let expected = |of: (f64, f64)| range(of, number);
            line.extend(series.expected.iter().map(|all| all[at].map_or_else(none, expected)));
        }
        line
    }

    /// Whether a place has no value.
    pub fn has_gaps(&self) -> bool {
        let series = self.panels.iter().flat_map(|panel| &panel.series);
        series.flat_map(|series| &series.values).any(Option::is_none)
    }

    /// How the values are written, those that were measured and those that were expected.
    fn form(&self) -> Form {
        let series = || self.panels.iter().flat_map(|panel| &panel.series);
        let measured = series().flat_map(|series| series.values.iter().copied().flatten());
        let expected = series().flat_map(|series| series.expected.iter().flatten().copied().flatten());
        Form::of(self.scale, measured.chain(expected.flat_map(|(low, high)| [low, high])))
    }

    /// What the page's script is told.
    pub(super) fn json(&self) -> serde_json::Value {
        let form = self.form();
        let places = self.panels.iter().flat_map(|panel| &panel.x).filter_map(|place| place.value.as_f64());
        json!({
            "title": self.title,
            "kind": self.kind.name(),
            "expectedIs": self.expected_is,
            "xAxis": Form::of(Scale::Unit(self.x_unit), places).of_axis(),
            "yAxis": form.of_axis(),
            "xLabel": self.x_label,
            "yLabel": self.y_label,
            "logX": self.log_x,
            "logY": self.log_y,
            "isOfChanges": matches!(self.scale, Scale::Change | Scale::Factor),
            "zeroIs": self.zero_is,
            "isLessBetter": self.better == Some(Ordering::Less),
            "isOrdered": self.is_ordered,
            "coloursPlaces": self.colours_places,
            "panels": self.panels.iter().map(|panel| panel.json(form)).collect::<Vec<_>>(),
        })
    }
}

/// What is expected, in words: one value, or the least and the greatest.
fn range((low, high): (f64, f64), text: impl Fn(f64) -> String) -> String {
    if low == high { text(low) } else { format!("{} to {}", text(low), text(high)) }
}

impl Panel {
    fn json(&self, form: Form) -> serde_json::Value {
        let x = |place: &Place| json!({ "key": place.value.exact(), "name": place.name, "at": place.value.as_f64() });
        let text = |value: &Option<f64>| value.map(|value| form.text(value));
        let expected = |all: &Vec<Option<(f64, f64)>>| -> Vec<Option<String>> {
            all.iter().map(|one| one.map(|of| range(of, |value| form.text(value)))).collect()
        };
        let series = |series: &Series| {
            json!({
                "key": series.key,
                "name": series.name,
                "values": series.values,
                "texts": series.values.iter().map(text).collect::<Vec<_>>(),
                "expected": series.expected,
                "expectedTexts": series.expected.as_ref().map(expected),
            })
        };
        json!({
            "title": self.title,
            "x": self.x.iter().map(x).collect::<Vec<_>>(),
            "series": self.series.iter().map(series).collect::<Vec<_>>(),
        })
    }
}
