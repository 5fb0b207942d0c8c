//! Finds the file that defines the item that a path names, through re-exports and globs.

use super::source::{Import, Sources};
use std::collections::BTreeSet;

/// An import, which is the use of a name that another file defines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Arrow {
    pub from: usize,
    pub to: usize,
    pub line: usize,
    pub name: String,
}

/// One possible meaning of a path.
#[derive(Clone, Copy, PartialEq)]
enum Target {
    Module(usize),
    /// An item, represented by the number of the file that defines it.
    File(usize),
}

/// Returns all imports between files, ordered by files and lines. Each name appears once per pair of files.
pub(super) fn arrows(sources: &Sources) -> Vec<Arrow> {
    let mut found = BTreeSet::new();
    for (number, module) in sources.modules.iter().enumerate() {
        // A re-export counts only if the file mentions the name. A glob counts only through the names that
        // the file mentions.
        let imports = module.imports.iter().filter(|import| !import.is_reexport);
        let imports = imports.map(|import| (&import.path, import.line));
        let mentions = module.mentions.iter().map(|mention| (&mention.path, mention.line));
        for (path, line) in imports.chain(mentions) {
            for target in sources.resolve(number, path, &mut Vec::new()) {
                // A path to a module is no import, because it uses no item of the module.
                if let Target::File(to) = target
                    && to != module.file
                {
                    let name = path.last().cloned().unwrap_or_default();
                    found.insert(Arrow { from: module.file, to, line, name });
                }
            }
        }
    }
    let mut seen = BTreeSet::new();
    found.into_iter().filter(|arrow| seen.insert((arrow.from, arrow.to, arrow.name.clone()))).collect()
}

impl Sources {
    /// Returns the possible meanings of `path` in `module`, or none for a path into another crate.
    /// `under_way` holds the look-ups that are not finished, because modules that import from each other
    /// would otherwise be looked up for ever.
    fn resolve(&self, module: usize, path: &[String], under_way: &mut Vec<(usize, String)>) -> Vec<Target> {
        let Some((first, rest)) = path.split_first() else { return Vec::new() };
        let here = &self.modules[module];
        let mut targets = match first.as_str() {
            "crate" => vec![Target::Module(here.root)],
            "self" => vec![Target::Module(module)],
            "super" => vec![Target::Module(here.parent)],
            name => self.look_up(module, name, under_way),
        };
        for name in rest {
            let modules: Vec<usize> = targets
                .iter()
                .filter_map(|target| match target {
                    Target::Module(module) => Some(*module),
                    Target::File(_) => None,
                })
                .collect();
            // The remaining names belong to an item, such as the variant of an enum, so the item is the
            // target.
            if modules.is_empty() {
                break;
            }
            targets = modules
                .into_iter()
                .flat_map(|module| match name.as_str() {
                    "self" => vec![Target::Module(module)],
                    "super" => vec![Target::Module(self.modules[module].parent)],
                    name => match self.look_up(module, name, under_way) {
                        // A name that the module does not define must come from a macro in the module's file.
                        none if none.is_empty() => vec![Target::File(self.modules[module].file)],
                        found => found,
                    },
                })
                .collect();
        }
        targets
    }

    /// Returns the possible meanings of `name` in `module`: a module, an item, or both.
    fn look_up(&self, module: usize, name: &str, under_way: &mut Vec<(usize, String)>) -> Vec<Target> {
        let key = (module, name.to_string());
        if under_way.contains(&key) {
            return Vec::new();
        }
        under_way.push(key);
        let here = &self.modules[module];
        let mut found: Vec<Target> =
            here.children.get(name).map(|child| Target::Module(*child)).into_iter().collect();
        if here.defined.contains(name) {
            found.push(Target::File(here.file));
        }
        for import in here.imports.iter().filter(|import| import.name.as_deref() == Some(name)) {
            found.extend(self.resolve(module, &import.path, under_way));
        }
        if here.root == module
            && let Some(file) = self.exported_macros.get(name)
        {
            found.push(Target::File(*file));
        }
        if found.is_empty() {
            let globs = here.imports.iter().filter(|import| import.name.is_none());
            found = globs.flat_map(|glob| self.look_up_in_glob(module, glob, name, under_way)).collect();
        }
        under_way.pop();
        found
    }

    fn look_up_in_glob(
        &self,
        module: usize,
        glob: &Import,
        name: &str,
        under_way: &mut Vec<(usize, String)>,
    ) -> Vec<Target> {
        let targets = self.resolve(module, &glob.path, under_way);
        targets
            .into_iter()
            .flat_map(|target| match target {
                Target::Module(module) => self.look_up(module, name, under_way),
                Target::File(_) => Vec::new(),
            })
            .collect()
    }
}
