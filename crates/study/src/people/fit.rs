//! Fits the columns of a table into a given width. The last columns are left out until the others fit. Then
//! long texts are broken into lines.

/// The gap between two columns, in characters.
const GAP: usize = 2;
/// The mark of the best value in a column.
const MARK: char = '*';
/// The terminal code that starts a heading: bold.
const HEAD: &str = "\x1b[1m";
/// The terminal code that starts the best value: bold and green.
const BEST: &str = "\x1b[1;32m";
/// The terminal code that ends a heading or a best value.
const PLAIN: &str = "\x1b[0m";

/// A column of a table with its formatted cells.
pub(crate) struct Shown {
    /// The heading of the column.
    pub head: String,
    /// The text of each cell, and whether the cell is the best of its case.
    pub cells: Vec<(String, bool)>,
    /// Whether the column contains text. Text is aligned left and may be broken into lines. Numbers are
    /// aligned right and are never broken.
    pub is_text: bool,
}

/// The steps of fitting, as pairs: the minimum width of a text column in characters, and the minimum number
/// of columns to show besides those that are always kept.
const STEPS: [(usize, usize); 4] = [(40, 4), (24, 3), (14, 1), (8, 0)];

impl Shown {
    fn is_marked(&self) -> bool {
        self.cells.iter().any(|(_, is_best)| *is_best)
    }

    /// Returns the width of the column in characters if no text is broken.
    fn width(&self) -> usize {
        let longest = self.cells.iter().map(|(cell, _)| length(cell)).max().unwrap_or(0);
        // In a column with a marked cell, every cell leaves room for the mark, so that numbers stay aligned.
        (longest + usize::from(self.is_marked())).max(length(&self.head))
    }
}

fn length(text: &str) -> usize {
    // Counts characters and not bytes, because `µ` and `–` take several bytes.
    text.chars().count()
}

/// Formats the columns in lines of at most `width` characters, and returns the text and the number of columns
/// that were left out. The first `kept` columns are never left out. Colour codes do not count towards the
/// width.
pub(crate) fn fitted(
    mut columns: Vec<Shown>,
    kept: usize,
    width: usize,
    has_colours: bool,
) -> (String, usize) {
    let count = columns.len();
    for (narrowest, least) in STEPS {
        for shown in ((kept + least).min(count)..=count).rev() {
            if let Some(widths) = widths(&columns[..shown], width, narrowest) {
                columns.truncate(shown);
                return (laid_out(&columns, &widths, has_colours), count - shown);
            }
        }
    }
    // If even the kept columns do not fit, cuts off the ends of the lines.
    columns.truncate(kept.max(1));
    let widths: Vec<usize> = columns.iter().map(Shown::width).collect();
    let text = laid_out(&columns, &widths, false);
    let lines = text.lines().map(|line| line.chars().take(width).collect::<String>() + "\n");
    (lines.collect(), count - columns.len())
}

/// Returns column widths whose sum fits into `width`, or `None` if there are none.
fn widths(columns: &[Shown], width: usize, narrowest: usize) -> Option<Vec<usize>> {
    let mut widths: Vec<usize> = columns.iter().map(Shown::width).collect();
    loop {
        let all = widths.iter().sum::<usize>() + GAP * columns.len().saturating_sub(1);
        if all <= width {
            return Some(widths);
        }
        let can_shrink =
            |at: &usize| columns[*at].is_text && widths[*at] > narrowest.max(length(&columns[*at].head));
        let widest = (0..columns.len()).filter(can_shrink).max_by_key(|at| widths[*at])?;
        widths[widest] -= 1;
    }
}

fn laid_out(columns: &[Shown], widths: &[usize], has_colours: bool) -> String {
    let rows = columns.iter().map(|column| column.cells.len()).max().unwrap_or(0);
    let mut text = String::new();
    let style = |style: &'static str| if has_colours { style } else { "" };
    let heads: Vec<Cell> =
        columns.iter().map(|column| Cell { lines: vec![column.head.clone()], style: style(HEAD) }).collect();
    push_row(&mut text, columns, widths, &heads);
    for row in 0..rows {
        let cells = columns.iter().zip(widths).map(|(column, width)| {
            let (cell, is_best) = &column.cells[row];
            let lines = if column.is_text { broken(cell, *width) } else { vec![cell.clone()] };
            Cell {
                lines: lines.into_iter().map(|line| placed(&line, column, *is_best)).collect(),
                style: style(if *is_best { BEST } else { "" }),
            }
        });
        let cells: Vec<Cell> = cells.collect();
        push_row(&mut text, columns, widths, &cells);
    }
    text
}

/// A cell in lines, and the terminal code that starts its style; empty for plain text.
struct Cell {
    lines: Vec<String>,
    style: &'static str,
}

/// Returns a cell with its mark, or with a space in place of the mark.
fn placed(cell: &str, column: &Shown, is_best: bool) -> String {
    match (column.is_marked() && !column.is_text, is_best) {
        (true, true) => format!("{cell}{MARK}"),
        (true, false) => format!("{cell} "),
        _ => cell.to_owned(),
    }
}

/// Appends one table row, which takes as many lines as its longest cell.
fn push_row(text: &mut String, columns: &[Shown], widths: &[usize], cells: &[Cell]) {
    let lines = cells.iter().map(|cell| cell.lines.len()).max().unwrap_or(0);
    for line in 0..lines {
        let mut whole = String::new();
        for ((column, width), cell) in columns.iter().zip(widths).zip(cells) {
            let part = cell.lines.get(line).map_or("", String::as_str);
            let room = " ".repeat(width.saturating_sub(length(part)));
            let part = match cell.style {
                "" => part.to_owned(),
                style => format!("{style}{part}{PLAIN}"),
            };
            whole += &if column.is_text { format!("{part}{room}  ") } else { format!("{room}{part}  ") };
        }
        *text += whole.trim_end();
        text.push('\n');
    }
}

/// Breaks `text` into lines of at most `width` characters, after a space, a semicolon or a comma if possible.
pub(crate) fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest: Vec<char> = text.chars().collect();
    while rest.len() > width {
        let breaks = |at: &usize| match rest[*at - 1] {
            ' ' | ';' => true,
            ',' => !is_grouped(&rest, *at),
            _ => rest[*at] == ' ',
        };
        let at = (1..=width).rev().find(breaks).unwrap_or(width.max(1));
        let line: String = rest.drain(..at).collect();
        lines.push(line.trim_end().to_owned());
        let spaces = rest.iter().take_while(|character| **character == ' ').count();
        rest.drain(..spaces);
    }
    lines.push(rest.into_iter().collect());
    lines
}

/// Whether the comma before `at` groups the digits of a number, as in 195,795.
fn is_grouped(text: &[char], at: usize) -> bool {
    let digits = text[at..].iter().take_while(|character| character.is_ascii_digit()).count();
    digits == 3 && at >= 2 && text[at - 2].is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(head: &str, cells: &[&str], best: usize) -> Shown {
        let is_text = cells[0].parse::<f64>().is_err();
        let cells = cells.iter().enumerate().map(|(at, cell)| ((*cell).to_owned(), at == best));
        Shown { head: head.to_owned(), cells: cells.collect(), is_text }
    }

    fn columns() -> Vec<Shown> {
        vec![
            column("name", &["ace:n_w=8,n_e=8", "raw"], 9),
            column("fast", &["9", "10"], 1),
            column("long_head", &["1.5", "2"], 9),
        ]
    }

    #[test]
    fn the_best_is_marked_and_numbers_stay_aligned() {
        let (text, left_out) = fitted(columns(), 1, 80, false);
        assert_eq!(left_out, 0);
        assert_eq!(
            text,
            "name             fast  long_head\nace:n_w=8,n_e=8    9         1.5\nraw               10*          2\n"
        );
    }

    #[test]
    fn a_narrow_table_leaves_out_columns_and_then_breaks_text() {
        for width in 8..40 {
            let (text, left_out) = fitted(columns(), 1, width, false);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
            assert_eq!(left_out > 0, width < 31, "{width}:\n{text}");
        }
        let (text, _) = fitted(columns(), 1, 31, false);
        assert!(text.contains("\nn_e=8\n"), "{text}");
    }

    /// The rule: colour codes for headings and best values do not change the layout.
    #[test]
    fn colours_take_no_width() {
        let coloured = fitted(columns(), 1, 80, true).0;
        assert!(
            coloured.contains("\x1b[1mfast\x1b[0m") && coloured.contains("\x1b[1;32m10*\x1b[0m"),
            "{coloured}"
        );
        assert_eq!(coloured.matches(BEST).count(), 1);
        let plain = [HEAD, BEST, PLAIN].iter().fold(coloured, |text, style| text.replace(style, ""));
        assert_eq!(plain, fitted(columns(), 1, 80, false).0);
    }

    #[test]
    fn text_is_broken_after_spaces_and_commas() {
        assert_eq!(broken("one two three", 8), ["one two", "three"]);
        assert_eq!(broken("a=1,b=2", 5), ["a=1,", "b=2"]);
        assert_eq!(broken("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(broken("", 3), [""]);
        // A number is not broken at its comma; a list of numbers is broken between two numbers.
        assert_eq!(broken("pgbench, 195,795 requests", 14), ["pgbench,", "195,795", "requests"]);
        assert_eq!(broken("24474,73423", 8), ["24474,", "73423"]);
    }
}
