//! Builds the plots of a study from its table.

use super::file::{PlotFile, PlotShape};
use super::select::{Select, known_columns};
use super::words::Words;
use crate::change;
use crate::report::{Panel, Place, Plot, PlotKind, Scale, Series, Verdict};
use crate::table::Table;
use fulgurite_base::SpecError;
use fulgurite_stack::StackError;
use fulgurite_stack::{Column, Row, Unit, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The data from which a plot is drawn.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub table: &'a Table,
    pub words: Words<'a>,
    /// The outcomes of the study's checks, each with the name of the check; `None` for a check without a
    /// name.
    pub verdicts: &'a [(Option<&'a str>, &'a Verdict)],
    pub is_quick: bool,
}

impl PlotFile {
    pub(super) fn draw(&self, source: Source<'_>) -> Result<Plot, StackError> {
        let wanted = Select { part: self.part.as_deref(), only: &self.only }.of(source.table)?;
        let table = &Table { rows: wanted.into_iter().cloned().collect() };
        known_columns(table, self.columns())?;
        self.one_row_a_place(table)?;
        let mut panels = match self.panels {
            None => vec![self.panel(None, &table.rows.iter().collect::<Vec<_>>(), source)],
            Some(column) => {
                let values = distinct(&table.rows.iter().collect::<Vec<_>>(), column);
                let names = source.words.of_column(column, &values);
                let panel = |(value, name): (&Value, String)| {
                    let rows: Vec<&Row> =
                        table.rows.iter().filter(|row| row.get(column) == Some(value)).collect();
                    self.panel(Some((value, name)), &rows, source)
                };
                values.iter().zip(names).map(panel).collect()
            }
        };
        self.published_has_its_places(&panels, table)?;
        if let Some(base) = &self.relative_to {
            panels.iter_mut().try_for_each(|panel| changes(panel, base))?;
        }
        Ok(self.plot(panels, source))
    }

    fn plot(&self, mut panels: Vec<Panel>, source: Source<'_>) -> Plot {
        let base = self.relative_to.as_ref().filter(|base| *base != "first");
        let x_label = self.x_label.clone().unwrap_or_else(|| source.words.column(self.x));
        // A line needs two points. A quick run may have a single one, which is drawn as a bar.
        let is_line = self.kind == PlotShape::Line && panels.iter().any(|panel| panel.x.len() > 1);
        let x_unit = if is_line { self.x.unit() } else { Unit::Number };
        let places = panels.iter_mut().flat_map(|panel| &mut panel.x);
        if self.kind == PlotShape::Line && !is_line {
            // Names each place in full, because bars have no labelled x axis.
            places.for_each(|place| place.name = source.words.named(self.x, &place.value.exact()));
        } else if !x_unit.scales().is_empty() {
            let humane = |place: &Place| place.value.as_f64().map(|number| x_unit.humane(number));
            places.for_each(|place| place.name = humane(place).unwrap_or_else(|| place.name.clone()));
        }
        Plot {
            title: self.title(&panels, source),
            caption: match self.hides_published(source) && !self.published.is_empty() {
                true => format!("{} Published values are not drawn in a quick run.", self.caption),
                false => self.caption.clone(),
            },
            kind: match self.kind {
                PlotShape::Line if is_line => PlotKind::Line,
                PlotShape::Bar | PlotShape::Line => PlotKind::Bar,
                PlotShape::HeatMap => PlotKind::HeatMap,
                PlotShape::Stack => PlotKind::Stack,
            },
            expected_is: if self.published.is_empty() { "closed form" } else { "published" },
            x_label,
            y_label: self.y_label.clone(),
            log_x: self.log_x,
            log_y: self.log_y && (is_line || self.kind != PlotShape::Line),
            scale: match self.y {
                _ if self.relative_to.is_some() => match change::any_is_large(all_values(&panels)) {
                    true => Scale::Factor,
                    false => Scale::Change,
                },
                _ if self.share || self.kind == PlotShape::Stack => Scale::Share,
                Some(column) => Scale::Unit(column.unit()),
                None => Scale::Unit(Unit::Number),
            },
            x_unit,
            zero_is: base.map(|base| source.words.name(base).to_owned()),
            better: self.y.and_then(Column::better),
            is_ordered: self.ordered.unwrap_or_else(|| panels.iter().all(|panel| are_ordered(&panel.x))),
            no_value: self.no_value.clone().unwrap_or_else(|| "the run has no such figure".to_owned()),
            joins_gaps: false,
            colours_places: self.series.is_none(),
            panels,
        }
    }

    /// Whether published values are omitted, because they are those of a full run and this is a quick one.
    fn hides_published(&self, source: Source<'_>) -> bool {
        self.published_of_full && source.is_quick
    }

    /// Returns the title if everything that it claims holds, and otherwise the neutral title.
    fn title(&self, panels: &[Panel], source: Source<'_>) -> String {
        let holds = |name: &String| {
            let of_name = |(known, _): &&(Option<&str>, &Verdict)| *known == Some(name.as_str());
            source.verdicts.iter().filter(of_name).all(|(_, verdict)| verdict.holds())
        };
        let best = self.best(panels);
        let says_too_much = self.title.contains("{best}") && best.is_none();
        let title = match &self.otherwise {
            Some(otherwise) if says_too_much || !self.holds.iter().all(holds) => otherwise,
            _ => &self.title,
        };
        // Leaves out the first point of a line, because it is its own baseline and always has the change
        // zero.
        let from_first = self.relative_to.as_deref() == Some("first");
        let is_drawn = |change: &f64| !from_first || *change != 0.0;
        let moved = super::finding::moved(all_values(panels).filter(is_drawn));
        // A title may break into lines. A no-break space keeps a number and its unit together.
        let title = title.replace("{change}", &moved.replace(" %", "\u{a0}%"));
        title.replace("{best}", best.as_deref().unwrap_or("no one"))
    }

    /// Returns the name of the series that is best at all places, or of the best place of all panels if there
    /// is one series. Returns two names if two share the places. Returns `None` if there would be more than
    /// two names, if the best two values at a place are within 1 %, or if the column does not tell which
    /// values are better.
    fn best(&self, panels: &[Panel]) -> Option<String> {
        let better = self.y?.better().filter(|_| self.relative_to.is_none())?;
        let mut best: Vec<&str> = Vec::new();
        for Panel { x, series, .. } in panels {
            let value = |series: &Series, at: usize, name| Some((series.values[at]?, name));
            let fields: Vec<Vec<(f64, &str)>> = match &series[..] {
                [one] => vec![(0..x.len()).filter_map(|at| value(one, at, x[at].name.as_str())).collect()],
                several => {
                    let of_place =
                        |at| several.iter().filter_map(move |one| value(one, at, one.name.as_str()));
                    (0..x.len()).map(|at| of_place(at).collect()).collect()
                }
            };
            for field in fields {
                let order =
                    |a: &f64, b: &f64| if better == Ordering::Less { a.total_cmp(b) } else { b.total_cmp(a) };
                let Some(first) = field.iter().map(|(value, _)| *value).min_by(order) else { continue };
                let is_first = |value: f64| value == first || (value / first - 1.0).abs() < 0.01;
                let mut names = field.iter().filter(|(value, _)| is_first(*value)).map(|(_, name)| *name);
                // If two values are about equal, neither is the best.
                let (Some(name), None) = (names.next(), names.next()) else { return None };
                if !best.contains(&name) {
                    best.push(name);
                }
            }
        }
        matches!(best.len(), 1 | 2).then(|| best.join(" or "))
    }

    fn panel(&self, of: Option<(&Value, String)>, rows: &[&Row], source: Source<'_>) -> Panel {
        let x = distinct(rows, self.x);
        let group = of.as_ref().map(|(value, _)| value.exact());
        let series = match self.series {
            None if self.stack.is_empty() => {
                vec![self.series_of(None, self.y_label.clone(), group.as_deref(), &x, rows, source)]
            }
            None => self.stack.iter().map(|column| stacked(*column, self.x, &x, rows, source)).collect(),
            Some(column) => {
                let values = distinct(rows, column);
                let names = source.words.of_column(column, &values);
                let of_value =
                    |(value, name)| self.series_of(Some(value), name, group.as_deref(), &x, rows, source);
                values.iter().zip(names).map(of_value).collect()
            }
        };
        // On the axis of a line plot, numbers are not preceded by the name of their quantity.
        let names = match self.kind {
            PlotShape::Line => source.words.of(&x),
            _ => source.words.of_column(self.x, &x),
        };
        let x = x.into_iter().zip(names).map(|(value, name)| Place { value, name }).collect();
        let mut panel = Panel { title: of.map(|(_, name)| name), x, series };
        // Drops series without values, which would appear only in the legend.
        panel.series.retain(|series| series.values.iter().any(Option::is_some));
        panel
    }

    fn series_of(
        &self,
        of: Option<&Value>,
        name: String,
        group: Option<&str>,
        x: &[Value],
        rows: &[&Row],
        source: Source<'_>,
    ) -> Series {
        let key = of.map(Value::exact).unwrap_or_default();
        let at = |x: &Value, column: Column| {
            let is = |row: &&&Row| {
                row.get(self.x) == Some(x)
                    && self
                        .series
                        .is_none_or(|series| row.get(series).map(Value::exact).as_ref() == Some(&key))
            };
            let mut here = rows.iter().filter(is);
            if self.over.is_none() {
                return here.next()?.number(column);
            }
            let values: Vec<f64> = here.map(|row| row.number(column)).collect::<Option<_>>()?;
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let of_group = group.and_then(|group| self.published.get(group));
        let published = of_group.or_else(|| self.published.get(&key));
        let expected = match (published.filter(|_| !self.hides_published(source)), self.expected) {
            (Some(published), _) => {
                Some(x.iter().map(|x| Some(published.get(&x.exact())?.range())).collect())
            }
            (None, Some(column)) => {
                Some(x.iter().map(|x| at(x, column).map(|value| (value, value))).collect())
            }
            (None, None) => None,
        };
        let values = x.iter().map(|x| at(x, self.y?)).collect();
        Series { key, name, values, expected, band: None }
    }

    /// Refuses several rows for one place of a series, because only one of them would be drawn.
    fn one_row_a_place(&self, table: &Table) -> Result<(), StackError> {
        let columns: Vec<Column> = [Some(self.x), self.series, self.panels].into_iter().flatten().collect();
        // A row without a value in one of the columns has no place and is not drawn.
        let place = |row: &Row| -> Option<Vec<String>> {
            columns.iter().map(|column| row.get(*column).map(Value::exact)).collect()
        };
        let mut first_of: BTreeMap<Vec<String>, &Row> = BTreeMap::new();
        for row in &table.rows {
            let Some(place) = place(row) else { continue };
            let first = *first_of.entry(place.clone()).or_insert(row);
            let differs = |column: &Column| {
                column.is_axis() && Some(*column) != self.over && first.get(*column) != row.get(*column)
            };
            let splits = Column::all().find(differs);
            if std::ptr::eq(first, row) || (self.over.is_some() && splits.is_none()) {
                continue;
            }
            let place: Vec<String> =
                columns.iter().zip(&place).map(|(column, value)| format!("{column} {value}")).collect();
            let accepted = match splits {
                Some(Column::Part) => "one `part`, or part as `series` or `panels`".to_owned(),
                Some(column) => format!(
                    "{column} as `series` or `panels`, one value of it in `where`, or `over = \"{column}\"` \
                     for their mean"
                ),
                None => "rows that differ in an option".to_owned(),
            };
            return Err(StackError::request(format!(
                "plot `{}` has several rows for {} and can draw only one; accepted: {accepted}",
                self.title,
                place.join(", ")
            )));
        }
        Ok(())
    }

    /// Refuses published values for a series or a place that does not exist.
    fn published_has_its_places(&self, panels: &[Panel], table: &Table) -> Result<(), StackError> {
        let rows: Vec<&Row> = table.rows.iter().collect();
        let columns = [self.series, self.panels].into_iter().flatten();
        let groups: Vec<String> =
            columns.flat_map(|column| distinct(&rows, column)).map(|value| value.exact()).collect();
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        let places: Vec<String> =
            panels.iter().flat_map(|panel| &panel.x).map(|place| place.value.exact()).collect();
        let places: Vec<&str> = places.iter().map(String::as_str).collect();
        for (name, published) in &self.published {
            if !groups.contains(&name.as_str()) {
                return Err(SpecError::unknown("series in published", name, &groups).into());
            }
            if let Some(place) = published.keys().find(|place| !places.contains(&place.as_str())) {
                return Err(SpecError::unknown("place in published", place, &places).into());
            }
        }
        Ok(())
    }
}

/// Returns all values of a plot.
fn all_values(panels: &[Panel]) -> impl Iterator<Item = f64> {
    let series = panels.iter().flat_map(|panel| &panel.series);
    series.flat_map(|series| &series.values).copied().flatten()
}

/// Draws a column as a layer of stacked bars.
fn stacked(column: Column, x_column: Column, x: &[Value], rows: &[&Row], source: Source<'_>) -> Series {
    let at = |x: &Value| rows.iter().find(|row| row.get(x_column) == Some(x))?.number(column);
    Series {
        key: column.to_string(),
        name: source.words.column(column),
        values: x.iter().map(at).collect(),
        expected: None,
        band: None,
    }
}

/// Whether the order of the places on the x axis has a meaning: they are numbers, or one name with different
/// options.
fn are_ordered(places: &[Place]) -> bool {
    let base = |place: &Place| match &place.value {
        Value::Text(text) => text.split(':').next().map(str::to_owned),
        _ => None,
    };
    let bases: Vec<Option<String>> = places.iter().map(base).collect();
    bases.iter().all(Option::is_none) || bases.windows(2).all(|two| two[0] == two[1])
}

/// Returns the distinct values of a column. Numbers are sorted, and names keep their order. The names of
/// groups are numbers that are stored as text, and are sorted as numbers.
fn distinct(rows: &[&Row], column: Column) -> Vec<Value> {
    let mut values: Vec<Value> = Vec::new();
    for value in rows.iter().filter_map(|row| row.get(column)) {
        if !values.contains(value) {
            values.push(value.clone());
        }
    }
    let number = |value: &Value| value.as_f64().or_else(|| value.exact().parse().ok());
    if values.iter().all(|value| number(value).is_some()) {
        values.sort_by(|a, b| number(a).unwrap_or(0.0).total_cmp(&number(b).unwrap_or(0.0)));
    }
    values
}

/// Returns the relative change from `from` to `to`, or `None` if either is missing or the baseline is zero.
fn between(from: Option<f64>, to: Option<f64>) -> Option<f64> {
    Some(to? / from.filter(|from| *from != 0.0)? - 1.0)
}

/// Replaces the values of a panel by relative changes. The baseline is the series or the place with the name
/// `base`, or with "first" the first point of each series. A baseline series or place is not drawn.
fn changes(panel: &mut Panel, base: &str) -> Result<(), StackError> {
    if base == "first" {
        for series in &mut panel.series {
            let first = series.values.iter().copied().flatten().next();
            series.values.iter_mut().for_each(|value| *value = between(first, *value));
        }
        return Ok(());
    }
    if let Some(at) = panel.series.iter().position(|series| series.key == base) {
        let by = panel.series.remove(at).values;
        for series in &mut panel.series {
            series.values.iter_mut().zip(&by).for_each(|(value, by)| *value = between(*by, *value));
        }
        return Ok(());
    }
    let Some(at) = panel.x.iter().position(|place| place.value.exact() == base) else {
        let places = panel.x.iter().map(|place| place.value.exact());
        let keys: Vec<String> = panel.series.iter().map(|series| series.key.clone()).chain(places).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).filter(|key| !key.is_empty()).collect();
        return Err(SpecError::unknown("series in relative_to", base, &keys).into());
    };
    panel.x.remove(at);
    for series in &mut panel.series {
        let by = series.values.remove(at);
        series.values.iter_mut().for_each(|value| *value = between(by, *value));
        if let Some(expected) = &mut series.expected {
            expected.remove(at);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::file::File;
    use super::*;

    /// Creates a study with one plot of hits by users, with one series per device.
    fn study(kind: &str, more: &str) -> File {
        let plot = format!(
            "[[plots]]\ntitle = 't'\ncaption = 'c'\nkind = '{kind}'\nx = 'users'\ny = 'hits'\nseries = \
             'device'\ny_label = 'y'\n{more}"
        );
        File::parse("t", &format!("title = 't'\nquestion = 'q'\ncommand = 'pool'\n[grid]\n{plot}")).unwrap()
    }

    fn drawn(file: &File, rows: &[(u32, u32, u32)], is_quick: bool) -> Plot {
        try_to_draw(file, rows, is_quick).unwrap()
    }

    fn try_to_draw(file: &File, rows: &[(u32, u32, u32)], is_quick: bool) -> Result<Plot, StackError> {
        let row = |(users, seed, hits): &(u32, u32, u32)| {
            let mut row = Row::default();
            row.set(Column::Device, "mem");
            row.set(Column::Users, *users);
            row.set(Column::Seed, *seed);
            row.set(Column::Hits, *hits);
            row.set(Column::Misses, *hits);
            row
        };
        let table = &Table { rows: rows.iter().map(row).collect() };
        let source = Source { table, words: Words(&BTreeMap::new()), verdicts: &[], is_quick };
        file.plots[0].draw(source)
    }

    /// The rule: with `over` a point is the mean of its rows. Without `over`, several rows for a point are
    /// refused, and the message names the column that would separate them.
    #[test]
    fn repetitions_are_drawn_as_their_mean() {
        let rows = [(1, 1, 10), (1, 2, 40), (8, 1, 7), (8, 2, 8)];
        let plot = drawn(&study("bar", "over = 'seed'\n"), &rows, false);
        assert_eq!(plot.panels[0].series[0].values, [Some(25.0), Some(7.5)]);
        let refused = |more: &str| try_to_draw(&study("bar", more), &rows, false).err().unwrap().to_string();
        let said = refused("");
        for part in ["plot `t`", "users 1, device mem", "seed as `series`", "`over = \"seed\"`"] {
            assert!(said.contains(part), "{part} is not in: {said}");
        }
        // With a mean over users, several seeds are still refused.
        let said = refused("over = 'users'\n");
        assert!(said.contains("seed as `series`"), "{said}");
    }

    /// The rule: a line with a single point becomes a bar from zero, and the name of the place includes the
    /// unit.
    #[test]
    fn a_line_of_one_point_is_a_bar() {
        let file = study("line", "log_y = true\n");
        let of = |rows: &[(u32, u32, u32)]| {
            let plot = drawn(&file, rows, true);
            (plot.kind, plot.log_y, plot.panels[0].x[0].name.clone())
        };
        assert_eq!(of(&[(64, 1, 10)]), (PlotKind::Bar, false, "64 users".to_owned()));
        assert_eq!(of(&[(64, 1, 10), (128, 1, 10)]), (PlotKind::Line, true, "64".to_owned()));
    }

    /// The rule: places that are numbers are sorted, even if they are stored as text, as the names of groups
    /// are.
    #[test]
    fn groups_are_sorted_as_numbers() {
        let row = |group: &&str| {
            let mut row = Row::default();
            row.set(Column::Group, *group);
            row
        };
        let order = |groups: &[&str]| {
            let rows: Vec<Row> = groups.iter().map(row).collect();
            let values = distinct(&rows.iter().collect::<Vec<_>>(), Column::Group);
            values.iter().map(Value::exact).collect::<Vec<_>>()
        };
        assert_eq!(order(&["2", "10", "6", "4", "6"]), ["2", "4", "6", "10"]);
        assert_eq!(order(&["2", "hot", "1"]), ["2", "hot", "1"]);
    }

    /// The rule: `{best}` in a title names the series that is best at all places. If there would be more than
    /// two names, or if the best two values are within 1 %, the neutral title is used.
    #[test]
    fn a_title_names_the_best() {
        let kinds = "title = 't'\nquestion = 'q'\ncommand = 'pool'\n[grid]\n[[plots]]\ntitle = '{best} hits \
             most'\notherwise = 'Hits'\ncaption = 'c'\nkind = 'bar'\ny_label = 'y'\ny = 'hits'\n";
        let title = |axes: &str, rows: &[(u32, u32, u32)]| {
            drawn(&File::parse("t", &format!("{kinds}{axes}")).unwrap(), rows, false).title
        };
        let (by_seed, alone) = ("x = 'users'\nseries = 'seed'\n", "x = 'users'\n");
        // In the first case the second series is best at both places; in the second case each series is best
        // at one place.
        assert_eq!(title(by_seed, &[(1, 1, 5), (1, 2, 9), (8, 1, 5), (8, 2, 7)]), "seed 2 hits most");
        assert_eq!(
            title(by_seed, &[(1, 1, 5), (1, 2, 9), (8, 1, 8), (8, 2, 7)]),
            "seed 2 or seed 1 hits most"
        );
        let three = [
            (1, 1, 9),
            (1, 2, 1),
            (1, 3, 1),
            (8, 1, 1),
            (8, 2, 9),
            (8, 3, 1),
            (9, 1, 1),
            (9, 2, 1),
            (9, 3, 9),
        ];
        assert_eq!(title(by_seed, &three), "Hits");
        assert_eq!(title(by_seed, &[(1, 1, 5), (1, 2, 5)]), "Hits");
        assert_eq!(title(by_seed, &[(1, 1, 1000), (1, 2, 1009)]), "Hits");
        assert_eq!(title(by_seed, &[(1, 1, 1000), (1, 2, 1011)]), "seed 2 hits most");
        // With a single series, `{best}` is the best place.
        assert_eq!(title(alone, &[(1, 1, 5), (8, 1, 9), (9, 1, 7)]), "8 users hits most");
        // Fewer misses are better, so the series with fewer is the best. Relative changes have no best, so
        // the neutral title is used.
        let rows = [(1, 1, 5), (1, 2, 9), (8, 1, 5), (8, 2, 7)];
        let misses = kinds.replace("y = 'hits'", "y = 'misses'");
        let of_misses = File::parse("t", &format!("{misses}{by_seed}")).unwrap();
        assert_eq!(drawn(&of_misses, &rows, false).title, "seed 1 hits most");
        assert_eq!(title(&format!("{by_seed}relative_to = '1'\n"), &rows), "Hits");
    }

    /// The rule: if one change of a plot is +100 % or more, all its changes are written as factors.
    #[test]
    fn large_changes_are_drawn_as_factors() {
        let file = study("line", "relative_to = 'first'\n");
        let written = |rows: &[(u32, u32, u32)]| {
            let plot = drawn(&file, rows, false);
            (plot.scale, plot.numbers().into_iter().map(|line| line[1].clone()).collect::<Vec<_>>())
        };
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let below = written(&[(1, 1, 100), (8, 1, 112), (9, 1, 199)]);
        assert_eq!(below, (Scale::Change, texts(&["0.0 %", "+12.0 %", "+99.0 %"])));
        let twice = written(&[(1, 1, 100), (8, 1, 112), (9, 1, 200)]);
        assert_eq!(twice, (Scale::Factor, texts(&["1.00×", "1.12×", "2.00×"])));
        // A fall is never written as a factor.
        let fallen = written(&[(1, 1, 100), (8, 1, 5)]);
        assert_eq!(fallen, (Scale::Change, texts(&["0.0 %", "−95.0 %"])));
    }

    /// The rule: a quick run does not draw the published values of a full run, and the caption says so.
    #[test]
    fn a_caption_says_that_published_values_are_not_drawn() {
        let file = study("bar", "published_of_full = true\npublished.mem.1 = 7\n");
        let of = |is_quick| {
            let plot = drawn(&file, &[(1, 1, 10)], is_quick);
            (plot.panels[0].series[0].expected.is_some(), plot.caption)
        };
        assert_eq!(of(true), (false, "c Published values are not drawn in a quick run.".to_owned()));
        assert_eq!(of(false), (true, "c".to_owned()));
    }
}
