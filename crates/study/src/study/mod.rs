//! Reads a study from TOML and executes it. A study is a grid of runs with comparisons, checks and plots. Its
//! results are a table and a report.

mod file;
mod finished;
mod interval;
mod ledger;
mod folder;
mod parts;
mod select;
mod words;
mod fault;
mod finding;
mod check;
mod mend;
mod plot;

use crate::grid::{self, Settings};
use crate::people;
use crate::report::{self, Plot, Report, Verdict};
use crate::table::Table;
use file::{File, Part};
use finished::Finished;
use folder::Folder;
use fulgurite_base::SpecError;
use fulgurite_files::obstacle;
use fulgurite_files::output::{Named, is_standard};
use fulgurite_stack::device::named_file;
use fulgurite_stack::runner::{self, Runs};
use fulgurite_stack::{Column, Command, Outlook, Progress, Row, StackError};
use ledger::Ledger;
pub use parts::Left;
use parts::{Kept, Parts};
use plot::Source;
use select::known_columns;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use words::Words;

/// The built-in studies, as pairs of the name and the TOML text.
const BUILT_IN: [(&str, &str); 11] = [
    ("quickstart", include_str!("../../studies/quickstart.toml")),
    ("write-concurrency", include_str!("../../studies/write-concurrency.toml")),
    ("waf-closed-form", include_str!("../../studies/waf-closed-form.toml")),
    ("preemptive-gc", include_str!("../../studies/preemptive-gc.toml")),
    ("emulated-drive", include_str!("../../studies/emulated-drive.toml")),
    ("ace", include_str!("../../studies/ace.toml")),
    ("ace-emulated", include_str!("../../studies/ace-emulated.toml")),
    ("raw", include_str!("../../studies/raw.toml")),
    ("myflashsql", include_str!("../../studies/myflashsql.toml")),
    ("midas", include_str!("../../studies/midas.toml")),
    ("real-drives", include_str!("../../studies/real-drives.toml")),
];

/// A study that was read, and checked as far as possible without a run.
pub struct Study {
    /// The name of a built-in study, or the name of the study's file without extension.
    pub name: String,
    source: String,
    typed: String,
    file: File,
}

/// The options for running a study.
#[derive(Clone, Copy, Debug)]
pub struct How<'a> {
    /// The output folder; `None` means `results/NAME`.
    pub out: Option<&'a Path>,
    /// Whether to make the smaller runs of the study's `quick` settings.
    pub quick: bool,
    /// A seed that replaces the study's; `None` keeps the study's.
    pub seed: Option<&'a str>,
    /// The maximum number of runs that are executed in parallel.
    pub threads: NonZeroUsize,
    /// Whether to use the finished runs in the folder: those of an incomplete attempt, or those of a complete
    /// study to draw its report again.
    pub resume: bool,
}

/// The grids of a study. Each has the name of its part, its command, and all values of its settings. The name
/// is `None` in a study without parts.
pub type Grids<'a> = Vec<(Option<&'a str>, Command, Settings)>;

/// The results of a study.
pub struct Outcome {
    /// The table of result rows.
    pub table: Table,
    /// The columns to show first.
    pub columns: Vec<Column>,
    /// The finding of the study, in one sentence.
    pub finding: String,
    /// The conclusions that were checked, with their outcomes.
    pub verdicts: Vec<Verdict>,
    /// The path of the report.
    pub report: PathBuf,
}

/// A rendered report, with those of its contents that are also shown on the terminal.
struct Page {
    html: String,
    columns: Vec<Column>,
    finding: String,
    verdicts: Vec<Verdict>,
}

/// Returns the names of the built-in studies with their titles.
pub fn names() -> impl Iterator<Item = (&'static str, String)> {
    BUILT_IN
        .iter()
        .map(|(name, source)| (*name, File::parse(name, source).map(|file| file.title).unwrap_or_default()))
}

impl Study {
    /// Opens the study `typed`, which is the name of a built-in study, the path of a TOML file, or `-` for
    /// TOML from standard input.
    pub fn open(typed: &str) -> Result<Study, StackError> {
        if is_standard(Path::new(typed)) {
            let source = io::read_to_string(io::stdin())
                .map_err(|error| StackError::request(format!("standard input cannot be read: {error}")))?;
            let file = File::parse("standard input", &source)?;
            return Ok(Study { name: "standard-input".to_owned(), source, typed: typed.to_owned(), file });
        }
        let built_in = BUILT_IN.iter().find(|(name, _)| *name == typed);
        let (name, source) = match built_in {
            Some((name, text)) => ((*name).to_owned(), (*text).to_owned()),
            None if typed.ends_with(".toml") => {
                let text = fs::read_to_string(typed).map_err(|error| {
                    StackError::request(format!(
                        "study {typed} cannot be read: {}; \
                         accepted: a TOML file that describes a study, or a name that `fulgurite list \
                         studies` shows",
                        obstacle(Path::new(typed), &error)
                    ))
                })?;
                let stem = Path::new(typed).file_stem().unwrap_or_default();
                (stem.to_string_lossy().into_owned(), text)
            }
            None => {
                let names = BUILT_IN.map(|(name, _)| name);
                return Err(StackError::request(format!(
                    "{}; a study of your own is a path that ends in .toml",
                    SpecError::unknown("study", typed, &names)
                )));
            }
        };
        let file = File::parse(typed, &source)?;
        Ok(Study { name, source, typed: typed.to_owned(), file })
    }

    /// Parses a study from TOML text. Errors and files call it `name`.
    pub fn read(name: &str, source: &str) -> Result<Study, StackError> {
        let file = File::parse(name, source)?;
        Ok(Study { name: name.to_owned(), source: source.to_owned(), typed: format!("{name}.toml"), file })
    }

    /// Returns the grids of all parts.
    pub fn grids(&self, how: &How<'_>) -> Result<Grids<'_>, StackError> {
        let whole =
            Part { name: String::new(), command: None, grid: BTreeMap::new(), quick: BTreeMap::new() };
        let parts =
            if self.file.parts.is_empty() { std::slice::from_ref(&whole) } else { &self.file.parts[..] };
        let grid = |(at, part): (usize, &Part)| {
            // Borrows the name from the file, because `whole` is dropped when the function returns.
            let name = self.file.parts.get(at).map(|known| known.name.as_str());
            Ok((name, part.command.unwrap_or(self.file.command), self.settings(part, how)?))
        };
        parts.iter().enumerate().map(grid).collect()
    }

    /// Returns the title of the study.
    pub fn title(&self) -> &str {
        &self.file.title
    }

    /// Returns the runs of the study, each with the name of its part (a `[[part]]` of the study file), and
    /// predicts their cost.
    fn runs(&self, how: &How<'_>) -> Result<(Parts<'_>, Outlook), StackError> {
        let mut runs = Parts::default();
        let mut outlook = Outlook::new(how.threads);
        for (name, command, settings) in self.grids(how)? {
            let is_about = |compare: &&file::Compare| compare.is_about(name.unwrap_or_default());
            if let Some(compare) = self.file.compare.as_ref().filter(is_about) {
                compare.check(&settings)?;
            }
            let (grid, of_part) =
                grid::span(command, &settings, how.threads).map_err(|error| self.named(error))?;
            runs.push(name, grid);
            outlook.join(of_part);
        }
        Ok((runs, outlook))
    }

    /// Returns the settings of a part. A later value of a setting replaces an earlier one, so the part
    /// overrides the common grid.
    fn settings(&self, part: &Part, how: &How<'_>) -> Result<Settings, StackError> {
        let command = part.command.unwrap_or(self.file.command);
        let applies = |name: &str| part.command.is_none() || command.setting(name).is_ok();
        let none = BTreeMap::new();
        let (of_study, of_part) = if how.quick { (&self.file.quick, &part.quick) } else { (&none, &none) };
        // The `quick` settings of the study change the common grid. A part has `quick` settings of its own.
        let common = self.file.grid.iter().chain(of_study).filter(|(name, _)| applies(name));
        let mut settings = Settings::new();
        for (name, value) in common.chain(&part.grid).chain(of_part) {
            settings.insert(name.clone(), value.texts()?);
        }
        if let Some(seed) = how.seed {
            settings.insert("seed".to_owned(), vec![seed.to_owned()]);
        }
        Ok(settings)
    }

    /// Adds the name of the study to an error.
    fn named(&self, error: StackError) -> StackError {
        match error {
            StackError::Request(sentence) => StackError::Request(format!("study {}: {sentence}", self.name)),
            failed => failed,
        }
    }

    /// Predicts the cost of the study's runs. No run is executed, no drive is measured, and no file is
    /// written.
    pub fn outlook(&self, how: &How<'_>) -> Result<Outlook, StackError> {
        Ok(self.runs(how)?.1)
    }

    /// Counts the finished runs that an earlier attempt left in the folder.
    pub fn left(&self, how: &How<'_>) -> Result<Left, StackError> {
        match ledger::keys(&self.folder(how.out)) {
            none if none.is_empty() => Ok(Left::default()),
            keys => Ok(self.runs(how)?.0.left(&keys)),
        }
    }

    /// Returns the output folder.
    pub fn folder(&self, out: Option<&Path>) -> PathBuf {
        out.map_or_else(|| Path::new("results").join(&self.name), Path::to_path_buf)
    }

    /// Runs the study, and writes the table, the study and the report into its folder. The files appear after
    /// all runs have succeeded. If a run fails, the rows of the finished runs are kept in the folder, and the
    /// error says so.
    ///
    /// `before` is called with the predicted cost of the runs, before the first of them begins.
    pub fn run(
        &self,
        how: &How<'_>,
        progress: &Progress,
        before: impl FnOnce(&Outlook),
    ) -> Result<Outcome, StackError> {
        let (mut runs, outlook) = self.runs(how)?;
        outlook.check().map_err(|error| self.named(error))?;
        before(&outlook);
        let out = self.folder(how.out);
        // Collects the files that the study reads, because a trace or a drive in the output folder must not
        // be overwritten.
        let inputs = self.inputs()?;
        let inputs: Vec<Named<'_>> =
            inputs.iter().map(|(argument, text)| Named::new(argument, named_file(text))).collect();
        let folder = Folder::prepare(&out, &inputs)?;
        self.keep_result(how, &out)?;
        let left = runs.left(&ledger::keys(&out));
        if left.is_of_another {
            return Err(in_the_way(
                &out,
                "the finished runs of another study, or of another size of this one",
            ));
        }
        runs.prepare().map_err(|error| self.named(error))?;
        let ledger = Ledger::open(&out, how.resume)?;
        let finished =
            if how.resume { Finished::open(&out, &self.file, runs.count()) } else { Finished::default() };
        let kept = Kept { runs: &runs, ledger: &ledger, finished: &finished };
        let outcome = self.execute(how, &kept, progress).and_then(|table| {
            let outcome = self.write(how, table, folder, &out)?;
            ledger.finish()?;
            Ok(outcome)
        });
        outcome.map_err(|error| with_finished(error, &out, left.others, runs.count()))
    }

    /// Refuses to replace the result of another study, and to replace a full result by a quick one. Either
    /// result may have taken hours.
    fn keep_result(&self, how: &How<'_>, out: &Path) -> Result<(), StackError> {
        let Some(was) = fs::read_to_string(out.join("study.toml")).ok() else { return Ok(()) };
        let Ok(was) = File::parse("study.toml", &was) else { return Ok(()) };
        if was.title != self.file.title {
            return Err(in_the_way(out, &format!("the result of another study, `{}`", was.title)));
        }
        let has_quick =
            !self.file.quick.is_empty() || self.file.parts.iter().any(|part| !part.quick.is_empty());
        if how.quick && has_quick {
            let (full, _) = self.runs(&How { quick: false, ..*how })?;
            let finished = Finished::open(out, &self.file, full.count());
            // The `run_id`s tell whether the runs of the table in the folder have the full size.
            if !finished.is_empty() && finished.rows(0, full.part(0), &full.run(0)?.id()?).is_some() {
                return Err(in_the_way(
                    out,
                    "the full result of this study, which a quick one would replace",
                ));
            }
        }
        Ok(())
    }

    fn execute(&self, how: &How<'_>, kept: &Kept<'_>, progress: &Progress) -> Result<Table, StackError> {
        let rows = runner::execute_all(kept.runs, how.threads, progress, kept)?;
        let mut table = Table::default();
        for (at, rows) in rows.into_iter().enumerate() {
            for mut row in rows {
                // Drops the execution cost, because it differs from one execution to the next and the table
                // must not.
                row.drop_cost();
                row.set_some(Column::Part, kept.runs.part(at));
                table.rows.push(row);
            }
        }
        Ok(table)
    }

    /// Renders the report and writes all files.
    fn write(
        &self,
        how: &How<'_>,
        table: Table,
        mut folder: Folder,
        out: &Path,
    ) -> Result<Outcome, StackError> {
        let page = self.page(&table, how.quick, &self.repeat(how.quick, how.seed))?;
        folder.write("table.csv", table.to_csv())?;
        folder.write("table.jsonl", table.to_json_lines())?;
        #[cfg(feature = "parquet")]
        folder.write("table.parquet", crate::parquet::bytes(&table)?)?;
        folder.write("study.toml", &self.source)?;
        folder.write("report.html", &page.html)?;
        folder.finish()?;
        let Page { columns, finding, verdicts, .. } = page;
        Ok(Outcome { table, columns, finding, verdicts, report: out.join("report.html") })
    }

    /// Renders the report for a table that was made elsewhere. `repeat` are the commands that reproduce the
    /// table. `is_quick` tells whether its runs are those of the study's `quick` settings.
    pub fn draw(&self, table: &Table, is_quick: bool, repeat: &[String]) -> Result<String, StackError> {
        Ok(self.page(table, is_quick, repeat)?.html)
    }

    fn page(&self, table: &Table, is_quick: bool, repeat: &[String]) -> Result<Page, StackError> {
        let words = Words(&self.file.names);
        let finding = self.finding(table, is_quick)?;
        let verdicts = self.file.checks.iter().map(|check| check.verdict(table, words, is_quick));
        let verdicts: Vec<Verdict> = verdicts.collect::<Result<_, _>>()?;
        let named = self.file.checks.iter().map(|check| check.name.as_deref());
        let named: Vec<_> = named.zip(&verdicts).collect();
        let source = Source { table, words, verdicts: &named, is_quick };
        let mut plots: Vec<Plot> =
            self.file.plots.iter().map(|plot| plot.draw(source)).collect::<Result<_, _>>()?;
        if is_quick {
            plots.retain(Plot::shows_something);
        }
        let columns = self.columns(table)?;
        let html = report::html(&Report {
            title: &self.file.title,
            command: report::STUDY,
            question: self.file.question.trim(),
            is_quick,
            finding: &finding,
            verdicts: &verdicts,
            notes: &notes(table),
            plots: &plots,
            plots_left_out: self.file.plots.len() - plots.len(),
            table,
            columns: &columns,
            repeat,
        });
        Ok(Page { html, columns, finding, verdicts })
    }

    /// Returns all settings that may name a file that the study reads: the study file, traces and drives.
    fn inputs(&self) -> Result<Vec<(&'static str, String)>, StackError> {
        let of_parts = self.file.parts.iter().flat_map(|part| [&part.grid, &part.quick]);
        let grids: Vec<_> = [&self.file.grid, &self.file.quick].into_iter().chain(of_parts).collect();
        let mut inputs = vec![("study", self.typed.clone())];
        for name in ["workload", "device"] {
            for values in grids.iter().filter_map(|grid| grid.get(name)) {
                inputs.extend(values.texts()?.into_iter().map(|text| (name, text)));
            }
        }
        Ok(inputs)
    }

    fn finding(&self, table: &Table, is_quick: bool) -> Result<String, StackError> {
        let words = Words(&self.file.names);
        let compared =
            self.file.compare.as_ref().map(|compare| compare.found(table, words, is_quick)).transpose()?;
        let deviation =
            self.file.deviation.as_ref().map(|deviation| deviation.sentence(table, words)).transpose()?;
        let said: Vec<String> = [compared, deviation].into_iter().flatten().collect();
        // A study without comparisons, checks and parts gets the sentence that its command prints.
        if said.is_empty() && self.file.checks.is_empty() && self.file.parts.is_empty() {
            return Ok(people::finding(table, self.file.command).unwrap_or_default());
        }
        Ok(said.join(" "))
    }

    fn columns(&self, table: &Table) -> Result<Vec<Column>, StackError> {
        known_columns(table, self.file.columns.iter().copied())?;
        Ok(if self.file.columns.is_empty() {
            table.columns_for_people(self.file.command)
        } else {
            table.columns().into_iter().filter(|column| self.file.columns.contains(column)).collect()
        })
    }

    fn repeat(&self, quick: bool, seed: Option<&str>) -> Vec<String> {
        let quick = if quick { " --quick" } else { "" };
        let seed = seed.map_or_else(String::new, |seed| format!(" --seed {seed}"));
        vec![format!("fulgurite study {}{quick}{seed}", self.typed)]
    }
}

/// Returns the number of finished runs in the folder `out`, regardless of the study that they belong to.
pub fn finished_runs(out: &Path) -> usize {
    ledger::keys(out).len()
}

/// Returns the error for a folder that contains a result that the study would replace.
fn in_the_way(out: &Path, what: &str) -> StackError {
    StackError::request(format!(
        "--out {} has {what}; accepted: another folder, or this one after that is deleted",
        out.display()
    ))
}

/// Adds to an error how many finished runs are kept. `others` is the number of finished runs in the folder
/// that belong to another study or version.
fn with_finished(error: StackError, out: &Path, others: usize, of: usize) -> StackError {
    let text = |said: String| match finished_runs(out).saturating_sub(others) {
        0 => said,
        finished => format!(
            "{said}; {finished} finished runs of {of} are kept in {}, and --resume goes on from them",
            out.display()
        ),
    };
    match error {
        StackError::Request(said) => StackError::Request(text(said)),
        StackError::Run(said) => StackError::Run(text(said)),
    }
}

/// Returns remarks on the runs, for the reader of the report.
fn notes(table: &Table) -> Vec<String> {
    let is_real = |row: &Row| row.text(Column::Device).starts_with("file:");
    let mut notes = vec![if table.rows.iter().any(is_real) {
        "Some or all runs used a real drive, so the figures differ from one execution to the next.".to_owned()
    } else {
        "Simulated in virtual time: the same command gives the same table, byte for byte, on any machine \
         and with any number of threads."
            .to_owned()
    }];
    let same = |column: &Column| {
        let first = table.rows.first().and_then(|row| row.get(*column));
        table.rows.iter().all(|row| row.get(*column).is_some() && row.get(*column) == first)
    };
    let described = |column: Column| {
        format!("{column} {}", table.rows.first().map(|row| row.text(column)).unwrap_or_default())
    };
    let constant: Vec<String> = Column::all()
        .filter(|column| column.is_axis() && !table.rows.is_empty())
        .filter(same)
        .map(described)
        .collect();
    if !constant.is_empty() {
        notes.push(format!("The same in all runs: {}.", constant.join(", ")));
    }
    if table.rows.iter().any(|row| row.number(Column::CpuPerRequestNs) == Some(0.0)) {
        notes.push(
            "With cpu_per_request_ns 0 a request costs no CPU time, so the run time is only the \
             drive's, and the gain of a policy is at its largest."
                .to_owned(),
        );
    }
    notes
}
