//! Checks the book: its pages, its links, and the two pieces of it that the program makes, which are a
//! picture and the reference. The repository holds the picture and the reference, so that they can be read in
//! a clone. The check compares them with the output of the program.
//!
//! The pages in `docs` are copied to `target/book`, and their links out of the book are changed to lead to
//! the repository on the web. mdbook converts the pages to HTML if it is installed. A test of the `fulgurite`
//! crate, `book`, executes the commands of the pages.

mod links;

use crate::{build, picture, root, run};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The pages of the reference, each printed by `fulgurite reference`.
const REFERENCE: &[&str] = &["commands", "names", "columns"];

/// The address that links out of the book lead to.
const REPOSITORY: &str = "https://github.com/fulgurite/fulgurite/blob/main/";

/// Documents outside the book whose links are checked too.
const OTHERS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "traces/README.md",
    "benches/peers/README.md",
];

/// The texts of pages, by their path in the repository.
type Pages = BTreeMap<String, String>;

/// Checks the book, and converts it to HTML if mdbook is installed.
pub(crate) fn check() -> Result<()> {
    let fulgurite = build::command()?;
    let picture = root().join("docs").join(picture::PLACE);
    let drawn = picture::draw(&fulgurite)?;
    ensure!(
        fs::read_to_string(&picture).is_ok_and(|there| there == drawn),
        "docs/{} differs from the picture that a run gives; `cargo xtask picture` draws it again",
        picture::PLACE
    );
    let pages = written()?;
    for (place, printed) in reference(&fulgurite)? {
        ensure!(
            pages.get(&place) == Some(&printed),
            "{place} is not what the command prints; `cargo xtask reference` writes it"
        );
    }
    let mut wrong = unlisted(&pages);
    wrong.extend(links::broken(&pages, root()));
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    let folder = lay_out(&pages)?;
    println!("{} pages, every link leads somewhere; laid out in {}", pages.len(), folder.display());
    html(&folder)
}

/// Draws the picture again and writes its file.
pub(crate) fn draw() -> Result<()> {
    write(&format!("docs/{}", picture::PLACE), &picture::draw(&build::command()?)?)
}

/// Writes the pages of the reference again.
pub(crate) fn write_reference() -> Result<()> {
    reference(&build::command()?)?.iter().try_for_each(|(place, text)| write(place, text))
}

fn write(place: &str, text: &str) -> Result<()> {
    let path = root().join(place);
    fs::create_dir_all(path.parent().context("a file has a folder")?)?;
    fs::write(path, text)?;
    println!("{place}");
    Ok(())
}

/// Returns the pages of the reference as `fulgurite` prints them.
fn reference(fulgurite: &Path) -> Result<Pages> {
    let print = |name: &&str| {
        let text = Command::new(fulgurite).args(["reference", name]).output().context("no reference")?;
        ensure!(text.status.success(), "fulgurite reference {name} failed");
        Ok((format!("docs/reference/{name}.md"), String::from_utf8(text.stdout)?))
    };
    REFERENCE.iter().map(print).collect()
}

/// Reads every page in the repository: those of the book, and the documents outside it.
fn written() -> Result<Pages> {
    let mut pages = Pages::new();
    for name in files(&root().join("docs"))? {
        let place = format!("docs/{name}");
        if name.ends_with(".md") {
            pages.insert(place.clone(), fs::read_to_string(root().join(place))?);
        }
    }
    for place in OTHERS {
        pages.insert((*place).to_owned(), fs::read_to_string(root().join(place)).context(*place)?);
    }
    Ok(pages)
}

/// Returns the files below `folder`, with paths relative to `folder`.
fn files(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.file_type()?.is_dir() {
            true => found.extend(files(&entry.path())?.into_iter().map(|below| format!("{name}/{below}"))),
            false => found.push(name),
        }
    }
    Ok(found)
}

/// Returns a message for each page that the summary does not list.
fn unlisted(pages: &Pages) -> Vec<String> {
    let summary = pages.get("docs/SUMMARY.md").map_or("", String::as_str);
    let pages = pages.keys().filter_map(|place| place.strip_prefix("docs/"));
    pages
        .filter(|page| *page != "SUMMARY.md" && !summary.contains(&format!("({page})")))
        .map(|page| format!("docs/SUMMARY.md does not name {page}"))
        .collect()
}

/// Writes the input of mdbook, and returns its folder.
fn lay_out(pages: &Pages) -> Result<PathBuf> {
    let folder = root().join("target/book");
    // Removes the pages of earlier runs of this check.
    let _ = fs::remove_dir_all(&folder);
    let docs = root().join("docs");
    for name in files(&docs)?.iter().filter(|name| !name.ends_with(".md")) {
        // The configuration of mdbook belongs beside the folder `src` of the pages, not into it.
        let is_of_mdbook = name.starts_with("book.");
        let to = if is_of_mdbook { folder.join(name) } else { folder.join("src").join(name) };
        fs::create_dir_all(to.parent().context("a file has a folder")?)?;
        fs::copy(docs.join(name), to)?;
    }
    for (place, text) in pages {
        if let Some(name) = place.strip_prefix("docs/") {
            let to = folder.join("src").join(name);
            fs::create_dir_all(to.parent().context("a page has a folder")?)?;
            fs::write(to, links::led_out(place, text, REPOSITORY))?;
        }
    }
    Ok(folder)
}

/// Converts the book to HTML if mdbook is installed. The gate does not install mdbook, because building it
/// takes a minute.
fn html(folder: &Path) -> Result<()> {
    let installed = root().join("target/tools/bin/mdbook");
    let program = if installed.is_file() { installed } else { PathBuf::from("mdbook") };
    if Command::new(&program).arg("--version").output().is_err() {
        println!("mdbook is not installed, so no HTML is written; scripts/book installs it and writes HTML");
        return Ok(());
    }
    run(Command::new(program).arg("build").arg(folder))?;
    println!("{}", folder.join("html/index.html").display());
    Ok(())
}
