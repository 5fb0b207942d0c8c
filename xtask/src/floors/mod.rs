//! Checks that the imports inside a crate go one way, from file to file and from module to module.
//!
//! Two rules are checked. First, the files of a crate do not import from each other in a circle. This
//! includes a module and its children. Second, a module imports from its siblings only if they are declared
//! above it. So the `mod` lines of a file are the floors of a building, the lowest first. The second rule
//! also holds for imports between files below the two modules.
//!
//! A `mod` line and a re-export do not count as imports. A name belongs to the file that defines it. The
//! check reads paths, so it does not see calls of methods.

mod graph;
mod names;
mod source;
#[cfg(test)]
mod tests;

use crate::root;
use anyhow::{Context, Result, bail};
use names::Arrow;
use source::Sources;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Checks every crate, and prints how many of its files are in circles.
pub(crate) fn check() -> Result<()> {
    let mut folders: Vec<PathBuf> =
        fs::read_dir(root().join("crates"))?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    folders.sort();
    let mut wrong = String::new();
    for folder in folders.iter().filter(|folder| folder.join("src").exists()) {
        let floors = Floors::of_folder(folder)?;
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        println!("{name}: {}", floors.count());
        wrong += &floors.complaints();
    }
    if !wrong.is_empty() {
        bail!("\n{wrong}");
    }
    Ok(())
}

/// Checks the crate in `folder`.
pub(crate) fn check_crate(folder: &str) -> Result<()> {
    let floors = Floors::of_folder(Path::new(folder))?;
    println!("{folder}: {}", floors.count());
    let wrong = floors.complaints();
    if !wrong.is_empty() {
        bail!("\n{wrong}");
    }
    Ok(())
}

/// The files of a crate and the imports between them.
struct Floors {
    /// The text that precedes the names of files in messages: the folder of the sources.
    place: String,
    sources: Sources,
    arrows: Vec<Arrow>,
    circles: Vec<Vec<usize>>,
}

/// The modules that one file declares, and the imports between their subtrees.
struct Siblings {
    file: usize,
    /// The imports, by the numbers of the importing and of the imported `mod` line.
    arrows: BTreeMap<(usize, usize), Vec<Arrow>>,
}

impl Siblings {
    fn edges(&self) -> BTreeSet<(usize, usize)> {
        self.arrows.keys().copied().collect()
    }

    /// Returns the sets of modules that import from each other in a circle, as numbers of `mod` lines.
    fn circles(&self, sources: &Sources) -> Vec<Vec<usize>> {
        graph::circles(sources.files[self.file].mods.len(), &self.edges())
    }
}

impl Floors {
    fn of_folder(folder: &Path) -> Result<Self> {
        let sources = folder.join("src");
        let place = folder.strip_prefix(root()).unwrap_or(folder).join("src").display().to_string();
        Self::new(&format!("{place}/"), &|name| fs::read_to_string(sources.join(name)).ok())
            .with_context(|| format!("{place} cannot be read"))
    }

    /// Reads a crate through `read`, which returns the text of a file below `place`, or `None` if there is no
    /// such file.
    fn new(place: &str, read: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let sources = source::read(read)?;
        if sources.files.is_empty() {
            bail!("no lib.rs and no main.rs");
        }
        let arrows = names::arrows(&sources);
        let edges = arrows.iter().map(|arrow| (arrow.from, arrow.to)).collect();
        let circles = graph::circles(sources.files.len(), &edges);
        Ok(Self { place: place.to_string(), sources, arrows, circles })
    }

    fn count(&self) -> String {
        let in_circles: usize = self.circles.iter().map(Vec::len).sum();
        let siblings = self.siblings();
        let tied: usize =
            siblings.iter().map(|siblings| siblings.circles(&self.sources).concat().len()).sum();
        let modules: usize =
            siblings.iter().map(|siblings| self.sources.files[siblings.file].mods.len()).sum();
        format!(
            "{in_circles} of {} files in {} circles, {tied} of {modules} modules in circles of siblings",
            self.sources.files.len(),
            self.circles.len(),
        )
    }

    /// Returns a message for every violation of a rule; empty if there is none.
    fn complaints(&self) -> String {
        let circles = self.circles.iter().map(|circle| self.complain_of_circle(circle));
        let siblings = self.siblings().into_iter().map(|siblings| self.complain_of_order(&siblings));
        circles.chain(siblings).collect()
    }

    fn complain_of_circle(&self, circle: &[usize]) -> String {
        let mut text = format!("{}: a circle of {} files:\n", self.place, circle.len());
        let mut names: BTreeMap<(usize, usize), Vec<&str>> = BTreeMap::new();
        for arrow in &self.arrows {
            if circle.contains(&arrow.from) && circle.contains(&arrow.to) {
                names.entry((arrow.from, arrow.to)).or_default().push(&arrow.name);
            }
        }
        for ((from, to), names) in names {
            let (from, to) = (&self.sources.files[from].name, &self.sources.files[to].name);
            _ = writeln!(text, "  {from} -> {to}: {}", names.join(", "));
        }
        text
    }

    /// Returns the modules of each file that declares some, with the imports between them.
    fn siblings(&self) -> Vec<Siblings> {
        let files = self.sources.files.iter().enumerate();
        files
            .filter(|(_, file)| !file.mods.is_empty())
            .map(|(file, parent)| {
                let mut arrows: BTreeMap<(usize, usize), Vec<Arrow>> = BTreeMap::new();
                let root = self.root_of(file);
                // Returns the number of the `mod` line of `parent` below which a file is, if there is one.
                let line_of = |other: usize| {
                    let below = self.sources.files[other].path.strip_prefix(&parent.path[..])?.first()?;
                    (self.root_of(other) == root).then_some(())?;
                    parent.mods.iter().position(|(name, _)| name == below)
                };
                for arrow in &self.arrows {
                    if let (Some(from), Some(to)) = (line_of(arrow.from), line_of(arrow.to))
                        && from != to
                    {
                        arrows.entry((from, to)).or_default().push(arrow.clone());
                    }
                }
                Siblings { file, arrows }
            })
            .collect()
    }

    /// Returns the root module of the tree that a file belongs to. A crate with a library and a command has
    /// two roots.
    fn root_of(&self, file: usize) -> usize {
        self.sources.modules.iter().find(|module| module.file == file).map_or(0, |module| module.root)
    }

    fn complain_of_order(&self, siblings: &Siblings) -> String {
        let parent = &self.sources.files[siblings.file];
        let mut text = String::new();
        for (&(from, to), arrows) in &siblings.arrows {
            if to < from {
                continue;
            }
            let ((above, _), (below, line)) = (&parent.mods[from], &parent.mods[to]);
            for arrow in arrows {
                let file = &self.sources.files[arrow.from].name;
                _ = writeln!(
                    text,
                    "{place}{file}:{}: `{}` is in `mod {below}`, declared after `mod {above}` ({place}{}:{line})",
                    arrow.line,
                    arrow.name,
                    parent.name,
                    place = self.place,
                );
            }
        }
        if text.is_empty() {
            return text;
        }
        let name = |number: &usize| parent.mods[*number].0.as_str();
        let circles = siblings.circles(&self.sources);
        for circle in &circles {
            let tied: Vec<&str> = circle.iter().map(name).collect();
            _ = writeln!(text, "{}{}: no order works for {}:", self.place, parent.name, tied.join(", "));
            for ((from, to), arrows) in &siblings.arrows {
                if circle.contains(from) && circle.contains(to) {
                    let names: BTreeSet<&str> = arrows.iter().map(|arrow| arrow.name.as_str()).collect();
                    let names: Vec<&str> = names.into_iter().collect();
                    _ = writeln!(text, "  {} -> {}: {}", name(from), name(to), names.join(", "));
                }
            }
        }
        if circles.is_empty() {
            let order = graph::order(parent.mods.len(), &siblings.edges());
            let order: Vec<&str> = order.iter().map(name).collect();
            _ = writeln!(text, "{}{}: an order that works: {}", self.place, parent.name, order.join(", "));
        }
        text
    }
}
