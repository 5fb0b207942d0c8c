//! Checks whether a store is sound, and reports which records are lost if it is not.

use crate::open::{StoreFile, is_damage};
use crate::report::Report;
use crate::text;
use fulgurite_device::Handle;
use fulgurite_engine::{CheckReport, Error, Options, Problem, Store};
use fulgurite_stack::progress::step;
use fulgurite_stack::{Column, Row, StackError};

/// The result of a check of a store that could be opened.
struct Found {
    report: CheckReport,
    tables: u64,
}

/// Reads every page of the store, and does not change the file. A store that cannot be opened is reported as
/// damaged.
pub fn check(file: &StoreFile) -> Result<Report, StackError> {
    let _step = step(format!("checking {}", file.path.display()), 0);
    let (executor, options) = file.overlay()?;
    let looking = look(executor.handle().into(), options);
    match executor.block_on(looking).map_err(StackError::run)? {
        Ok(mut found) => {
            found.report.problems.extend(problem_of_end(file));
            Ok(report_of(file, &found))
        }
        Err(error) if is_damage(&error) => Ok(report_unopened(file, &error)),
        Err(Error::NotAStore) => Err(StackError::request(format!(
            "{} holds no store; accepted: a store; if its first pages are lost, fulgurite repair saves the rest",
            file.path.display()
        ))),
        Err(error) => Err(file.failed(&error)),
    }
}

/// Returns the damage behind the last page, if there is any. Writing to a store requires Fulgurite's mark
/// there, which says that Fulgurite created the drive. Reading does not need the mark.
fn problem_of_end(file: &StoreFile) -> Option<Problem> {
    (!fulgurite_uring::is_drive(&file.path)).then(|| Problem {
        table: "(end of the file)".to_owned(),
        page: None,
        what: "Fulgurite's mark is not there: the file was cut, or something was written behind it; it can be read \
            and not written".to_owned(),
        lost: None,
        waiting: 0,
    })
}

async fn look(handle: Handle, options: Options) -> Result<Found, Error> {
    let store = Store::open(handle, options).await?;
    let report = store.check().await?;
    let tables = store.tables().await?.len() as u64;
    Ok(Found { report, tables })
}

fn report_of(file: &StoreFile, Found { report, tables }: &Found) -> Report {
    let name = file.path.display().to_string();
    let mut row = Row::default();
    row.set(Column::File, name.as_str());
    row.set(Column::Tables, *tables);
    row.set(Column::Records, report.records);
    row.set(Column::PagesChecked, report.pages);
    row.set(Column::PagesUnused, report.unused_pages);
    row.set(Column::PiecesUnused, report.unused_pieces);
    row.set(Column::Problems, report.problems.len() as u64);
    let looked_at = format!(
        "{} page{}, {} record{} in {} table{}",
        row.text(Column::PagesChecked),
        plural(report.pages),
        row.text(Column::Records),
        plural(report.records),
        row.text(Column::Tables),
        plural(*tables)
    );
    let mut rows = vec![row];
    rows.extend(report.problems.iter().map(|problem| problem_row(&name, problem)));
    let mut text = String::new();
    for problem in &report.problems {
        text += &format!("{problem}\n");
    }
    let verdict = match report.problems.len() {
        0 => {
            text += &format!("{name} is sound: {looked_at}\n");
            Ok(())
        }
        problems => Err(StackError::run(format!(
            "{name} is damaged: {problems} problem{} in {looked_at}; fulgurite repair {name} OUT saves the rest",
            plural(problems as u64)
        ))),
    };
    if report.unused_pages > 0 {
        let what = match report.problems.is_empty() {
            true => "hold nothing; they only take up space",
            false => "nothing leads to them: they are empty or hold lost records; repair searches them",
        };
        text += &format!("{} pages are marked as used, and {what}\n", report.unused_pages);
    }
    if report.unused_pieces > 0 {
        let what = match report.problems.is_empty() {
            true => "an interrupted load or transaction left them; the next opening for writing deletes them",
            false => "an interrupted bulk load left them, or the records that had them are lost",
        };
        text += &format!("{} pieces of large values belong to no record: {what}\n", report.unused_pieces);
    }
    Report { rows, text: Some(text), verdict }
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn problem_row(file: &str, problem: &Problem) -> Row {
    let mut row = Row::default();
    row.set(Column::File, file);
    row.set(Column::Table, problem.table.as_str());
    row.set_some(Column::Page, problem.page.map(|page| page.0));
    row.set(Column::Problem, problem.what.as_str());
    if let Some((low, high)) = &problem.lost {
        row.set(Column::LostFrom, text::escape(low));
        row.set_some(Column::LostTo, high.as_deref().map(text::escape));
        row.set(Column::LostExcept, problem.waiting);
    }
    row
}

fn report_unopened(file: &StoreFile, error: &Error) -> Report {
    let name = file.path.display().to_string();
    let mut row = Row::default();
    row.set(Column::File, name.as_str());
    row.set(Column::Problems, 1u64);
    row.set(Column::Problem, format!("it cannot be opened: {error}"));
    Report {
        rows: vec![row],
        text: Some(format!("{name} cannot be opened: {error}\n")),
        verdict: Err(StackError::run(format!(
            "{name} is damaged; fulgurite repair {name} OUT saves what can be saved, and says what is lost"
        ))),
    }
}
