//! From a table to the plots that a study asks for.

use super::file::{PlotFile, PlotShape};
use super::{Select, known_columns};
use crate::report::{Plot, PlotKind, Series};
use crate::table::Table;
use fulgurite_base::SpecError;
use fulgurite_stack::StackError;
use fulgurite_stack::{Column, Row, Unit, Value};

impl PlotFile {
    pub fn draw(&self, table: &Table) -> Result<Plot, StackError> {
        let wanted = Select { part: self.part.as_deref(), only: &self.only }.of(table)?;
        let table = &Table { rows: wanted.into_iter().cloned().collect() };
        known_columns(table, self.columns())?;
        let x = distinct(table, self.x);
        let stacked = self.stack.iter().map(|column| Series {
            name: column.to_string(),
            values: x.iter().map(|x| row_at(table, self.x, x)?.number(*column)).collect(),
            expected: None,
        });
        let named = self.series.map_or_else(Vec::new, |series| distinct(table, series));
        let series = named.into_iter().map(|name| {
            let values = |column: Column| x.iter().map(|x| self.at(table, x, &name, column)).collect();
            Series {
                name: name.readable(),
                values: self.y.map_or_else(Vec::new, values),
                expected: match self.published.get(&name.exact()) {
                    Some(published) => Some(x.iter().map(|x| published.get(&x.exact()).copied()).collect()),
                    None => self.expected.map(values),
                },
            }
        });
        let mut series: Vec<Series> = series.chain(stacked).collect();
        let names = series.iter().map(|series| series.name.as_str()).collect::<Vec<_>>();
        for (name, published) in &self.published {
            if !names.contains(&name.as_str()) {
                return Err(SpecError::unknown("series in published", name, &names).into());
            }
            let places: Vec<String> = x.iter().map(Value::exact).collect();
            let places: Vec<&str> = places.iter().map(String::as_str).collect();
            if let Some(place) = published.keys().find(|place| !places.contains(&place.as_str())) {
                return Err(SpecError::unknown("place in published", place, &places).into());
            }
        }
        // A series without values would appear only in the legend.
        series.retain(|series| series.values.iter().any(Option::is_some));
        if let Some(base) = &self.relative_to {
            divide(&mut series, base)?;
        }
        Ok(Plot {
            title: self.title.clone(),
            caption: self.caption.clone(),
            kind: match self.kind {
                PlotShape::Bar => PlotKind::Bar,
                PlotShape::Line => PlotKind::Line,
                PlotShape::HeatMap => PlotKind::HeatMap,
                PlotShape::Stack => PlotKind::Stack,
            },
            expected_is: if self.published.is_empty() { "expected" } else { "published" },
            x_label: self.x_label.clone().unwrap_or_else(|| self.x.to_string()),
            y_label: self.y_label.clone(),
            log_x: self.log_x,
            log_y: self.log_y,
            unit: match self.y.filter(|_| self.relative_to.is_none()) {
                Some(column) => column.unit(),
                None => Unit::Number,
            },
            x_unit: if self.kind == PlotShape::Line { self.x.unit() } else { Unit::Number },
            reference: self.relative_to.is_some().then_some(1.0),
            x,
            series,
        })
    }

    fn at(&self, table: &Table, x: &Value, series: &Value, column: Column) -> Option<f64> {
        let series_column = self.series?;
        let is_here = |row: &&Row| row.get(self.x) == Some(x) && row.get(series_column) == Some(series);
        let mut here = table.rows.iter().filter(is_here);
        if self.over.is_none() {
            return here.next()?.number(column);
        }
        let values: Vec<f64> = here.map(|row| row.number(column)).collect::<Option<_>>()?;
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }
}

fn row_at<'a>(table: &'a Table, column: Column, value: &Value) -> Option<&'a Row> {
    table.rows.iter().find(|row| row.get(column) == Some(value))
}

/// The distinct values of a column, numbers in order, names as they come.
fn distinct(table: &Table, column: Column) -> Vec<Value> {
    let mut values: Vec<Value> = Vec::new();
    for value in table.rows.iter().filter_map(|row| row.get(column)) {
        if !values.contains(value) {
            values.push(value.clone());
        }
    }
    if values.iter().all(|value| value.as_f64().is_some()) {
        values.sort_by(|a, b| a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0)));
    }
    values
}

/// Divides every series by the one called `base`, or by its own first point.
fn divide(series: &mut [Series], base: &str) -> Result<(), StackError> {
    // A point without a base, or with a base of zero, has no ratio and is not drawn.
    let quotient = |value: Option<f64>, by: Option<f64>| Some(value? / by.filter(|by| *by != 0.0)?);
    if base == "first" {
        for series in series {
            let first = series.values.iter().copied().flatten().next();
            series.values.iter_mut().for_each(|value| *value = quotient(*value, first));
        }
        return Ok(());
    }
    let names: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
    let at = names
        .iter()
        .position(|name| *name == base)
        .ok_or_else(|| SpecError::unknown("series in relative_to", base, &names))?;
    // The base is divided by itself too, so its values are kept first.
    let by = series[at].values.clone();
    for series in series {
        series.values.iter_mut().zip(&by).for_each(|(value, by)| *value = quotient(*value, *by));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::file::File;
    use super::*;

    /// The rule: with `over` a point is the mean of its rows, without it the first of them.
    #[test]
    fn repetitions_are_drawn_as_their_mean() {
        let drawn = |over: &str| {
            let plot = format!(
                "[[plots]]\ntitle = 't'\ncaption = 'c'\nkind = 'bar'\nx = 'users'\ny = 'hits'\nseries = 'device'\ny_label = 'y'\n{over}"
            );
            let file =
                File::parse("t", &format!("title = 't'\nquestion = 'q'\ncommand = 'pool'\n[grid]\n{plot}"))
                    .unwrap();
            let row = |users: u32, seed: u32, hits: u32| {
                let mut row = Row::default();
                row.set(Column::Device, "mem");
                row.set(Column::Users, users);
                row.set(Column::Seed, seed);
                row.set(Column::Hits, hits);
                row
            };
            let rows = vec![row(1, 1, 10), row(1, 2, 40), row(8, 1, 7), row(8, 2, 8)];
            file.plots[0].draw(&Table { rows }).unwrap().series[0].values.clone()
        };
        assert_eq!(drawn("over = 'seed'\n"), [Some(25.0), Some(7.5)]);
        assert_eq!(drawn(""), [Some(10.0), Some(7.0)]);
    }
}
