//! Reads the source files of a crate into modules, with the names that each module defines, imports and
//! mentions.
//!
//! The reader works on tokens, so strings and comments do not count and the bodies of macros do. It skips
//! everything that is compiled only for tests.

use anyhow::{Context, Result, anyhow};
use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The files of a crate, and the modules that they contain. Both are identified by their numbers in these
/// lists.
#[derive(Default)]
pub(super) struct Sources {
    pub files: Vec<File>,
    pub modules: Vec<Module>,
    /// The macros with `#[macro_export]`, whose path begins at the crate's root, each with the number of the
    /// file that defines it.
    pub exported_macros: BTreeMap<String, usize>,
}

pub(super) struct File {
    /// The path of the file, relative to the folder of the sources and with `/`.
    pub name: String,
    /// The path of the module that fills the file; empty for a root.
    pub path: Vec<String>,
    /// The `mod` lines of the file in their order, as (name, line).
    pub mods: Vec<(String, usize)>,
}

/// A module, which is a whole file, or a `mod name { … }` inside a file.
pub(super) struct Module {
    pub file: usize,
    /// The number of the parent module; for a root, the number of the root itself.
    pub parent: usize,
    pub root: usize,
    pub children: BTreeMap<String, usize>,
    /// The names of the items that the module defines itself.
    pub defined: BTreeSet<String>,
    pub imports: Vec<Import>,
    pub mentions: Vec<Mention>,
}

/// One name of a `use` tree.
pub(super) struct Import {
    /// The name that the item gets in this module; `None` for a glob.
    pub name: Option<String>,
    pub path: Vec<String>,
    pub line: usize,
    /// Whether the import is a `pub use` of any visibility, so that other modules can import the name from
    /// here.
    pub is_reexport: bool,
}

/// A path, or a single name, in code.
pub(super) struct Mention {
    pub path: Vec<String>,
    pub line: usize,
}

/// Reads all modules from `lib.rs` and `main.rs` down. `read` returns the text of a file, or `None` if the
/// file does not exist.
pub(super) fn read(read: &dyn Fn(&str) -> Option<String>) -> Result<Sources> {
    let mut sources = Sources::default();
    for root in ["lib.rs", "main.rs"] {
        if let Some(text) = read(root) {
            let module = sources.modules.len();
            sources.add_file(read, root, &text, &[], module)?;
        }
    }
    Ok(sources)
}

impl Sources {
    fn add_file(
        &mut self,
        read: &dyn Fn(&str) -> Option<String>,
        name: &str,
        text: &str,
        path: &[String],
        parent: usize,
    ) -> Result<usize> {
        let tokens: TokenStream = text.parse().map_err(|error| anyhow!("{name} is no Rust: {error}"))?;
        let file = self.files.len();
        self.files.push(File { name: name.to_string(), path: path.to_vec(), mods: Vec::new() });
        let module = self.add_module(file, parent);
        self.scan(module, tokens, true);
        for (child, _) in self.files[file].mods.clone() {
            let (name, text) = child_file(read, name, &child)
                .with_context(|| format!("{name} declares `mod {child}`, but there is no file of it"))?;
            let path: Vec<String> = path.iter().chain([&child]).cloned().collect();
            let added = self.add_file(read, &name, &text, &path, module)?;
            self.modules[module].children.insert(child, added);
        }
        Ok(module)
    }

    fn add_module(&mut self, file: usize, parent: usize) -> usize {
        let number = self.modules.len();
        self.modules.push(Module {
            file,
            parent,
            root: if parent == number { number } else { self.modules[parent].root },
            children: BTreeMap::new(),
            defined: BTreeSet::new(),
            imports: Vec::new(),
            mentions: Vec::new(),
        });
        number
    }

    /// Records the names in `tokens`. Items define names of the module only at the top of the module
    /// (`is_top`).
    fn scan(&mut self, module: usize, tokens: TokenStream, is_top: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        let mut is_public = false;
        let mut is_exported = false;
        while at < tokens.len() {
            if let Some((attribute, end)) = attribute(&tokens, at) {
                if is_for_tests(&attribute) {
                    at = after_element(&tokens, end);
                    continue;
                }
                is_exported |= attribute.to_string() == "macro_export";
                self.scan(module, attribute, false);
                at = end;
                continue;
            }
            at = match &tokens[at] {
                TokenTree::Ident(word) if *word == "pub" => {
                    is_public = true;
                    at + 1 + usize::from(group(&tokens, at + 1, Delimiter::Parenthesis).is_some())
                }
                TokenTree::Ident(word) => {
                    let end = self.scan_word(module, &tokens, at, word, (is_top, is_public, is_exported));
                    (is_public, is_exported) = (false, false);
                    end
                }
                TokenTree::Group(inner) => {
                    // Items in a macro call at the top of the module are items of the module.
                    let is_call = at >= 2 && is_punct(&tokens, at - 1, '!');
                    self.scan(module, inner.stream(), is_top && is_call);
                    at + 1
                }
                _ => at + 1,
            };
        }
    }

    /// Handles the word at `at`, and returns the position behind the tokens that it has read.
    fn scan_word(
        &mut self,
        module: usize,
        tokens: &[TokenTree],
        at: usize,
        word: &Ident,
        (is_top, is_public, is_exported): (bool, bool, bool),
    ) -> usize {
        let next = word_at(tokens, at + 1);
        match (word.to_string().as_str(), next) {
            ("use", _) if !is_punct(tokens, at + 1, '<') => {
                let end = (at..tokens.len()).find(|&at| is_punct(tokens, at, ';')).unwrap_or(tokens.len());
                let found = use_tree(&tokens[at + 1..end], &[]);
                let imports = found.into_iter().map(|(name, path, line)| Import {
                    name,
                    path,
                    line,
                    is_reexport: is_public,
                });
                self.modules[module].imports.extend(imports);
                end + 1
            }
            ("mod", Some(name)) if is_punct(tokens, at + 2, ';') => {
                let mods = &mut self.files[self.modules[module].file].mods;
                // Add the module only once, because both the library and the command of a crate may declare
                // it.
                if !mods.iter().any(|(known, _)| name == known) {
                    mods.push((name.to_string(), word.span().start().line));
                }
                at + 3
            }
            ("mod", Some(name)) => {
                let Some(body) = group(tokens, at + 2, Delimiter::Brace) else { return at + 2 };
                let inner = self.add_module(self.modules[module].file, module);
                self.modules[module].children.insert(name.to_string(), inner);
                self.scan(inner, body, true);
                at + 3
            }
            ("macro_rules", None) => {
                if let Some(name) = word_at(tokens, at + 2) {
                    self.modules[module].defined.insert(name.to_string());
                    if is_exported {
                        self.exported_macros.insert(name.to_string(), self.modules[module].file);
                    }
                }
                // Items in a macro's rules belong to the caller of the macro, so they define no names of this
                // module.
                if let Some(TokenTree::Group(rules)) = tokens.get(at + 3) {
                    self.scan(module, rules.stream(), false);
                }
                at + 4
            }
            ("struct" | "enum" | "union" | "trait" | "type" | "fn" | "const" | "static", Some(name)) => {
                match name.to_string().as_str() {
                    "fn" | "unsafe" | "async" | "extern" | "mut" => at + 1,
                    name if is_top => {
                        self.modules[module].defined.insert(name.to_string());
                        at + 2
                    }
                    _ => at + 2,
                }
            }
            _ => self.scan_path(module, tokens, at, word),
        }
    }

    /// Records the path that begins at `at`, unless the word belongs to a method call, a lifetime or the rest
    /// of a path.
    fn scan_path(&mut self, module: usize, tokens: &[TokenTree], at: usize, word: &Ident) -> usize {
        let mut path = vec![word.to_string()];
        let mut end = at + 1;
        while is_path_separator(tokens, end)
            && let Some(word) = word_at(tokens, end + 2)
        {
            path.push(word.to_string());
            end += 3;
        }
        let continues = at >= 2 && is_path_separator(tokens, at - 2);
        if continues
            || at >= 1
                && (is_punct(tokens, at - 1, '.') && !is_range(tokens, at) || is_punct(tokens, at - 1, '\''))
        {
            return end;
        }
        // A single name in lower case that is not called is a variable or a field, so it is not recorded.
        let is_called = is_punct(tokens, end, '!') || group(tokens, end, Delimiter::Parenthesis).is_some();
        if path.len() > 1 || is_called || path[0].starts_with(char::is_uppercase) {
            self.modules[module].mentions.push(Mention { path, line: word.span().start().line });
        }
        end
    }
}

/// Returns the file of the module `child`, which the file `parent` declares, and the text of that file.
fn child_file(read: &dyn Fn(&str) -> Option<String>, parent: &str, child: &str) -> Option<(String, String)> {
    let parent = Path::new(parent);
    let folder = match parent.file_stem()?.to_str()? {
        "lib" | "main" | "mod" => parent.parent()?.to_path_buf(),
        stem => parent.with_file_name(stem),
    };
    let names: [PathBuf; 2] = [folder.join(format!("{child}.rs")), folder.join(child).join("mod.rs")];
    names.iter().find_map(|name| {
        let name = name.to_str()?;
        read(name).map(|text| (name.to_string(), text))
    })
}

/// Returns the names of a `use` tree below `prefix`: for each the name in this module, the path, and the
/// line.
fn use_tree(tokens: &[TokenTree], prefix: &[String]) -> Vec<(Option<String>, Vec<String>, usize)> {
    let mut path = prefix.to_vec();
    for (at, token) in tokens.iter().enumerate() {
        let line = token.span().start().line;
        match token {
            TokenTree::Ident(word) if *word == "as" => {
                let name = word_at(tokens, at + 1).map(ToString::to_string).unwrap_or_default();
                return vec![(Some(name), path, line)];
            }
            // `{self}` names the path before it, so the path does not change.
            TokenTree::Ident(word) if *word == "self" && !path.is_empty() => {}
            TokenTree::Ident(word) => path.push(word.to_string()),
            TokenTree::Punct(star) if star.as_char() == '*' => return vec![(None, path, line)],
            TokenTree::Group(inner) => {
                let inner: Vec<TokenTree> = inner.stream().into_iter().collect();
                let parts =
                    inner.split(|token| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ','));
                return parts.flat_map(|part| use_tree(part, &path)).collect();
            }
            _ => {}
        }
    }
    match (tokens.last(), path.last()) {
        (Some(token), Some(name)) => vec![(Some(name.clone()), path.clone(), token.span().start().line)],
        _ => Vec::new(),
    }
}

/// Returns the content of the attribute at `at`, and the position behind the attribute.
fn attribute(tokens: &[TokenTree], at: usize) -> Option<(TokenStream, usize)> {
    if !is_punct(tokens, at, '#') {
        return None;
    }
    let open = at + 1 + usize::from(is_punct(tokens, at + 1, '!'));
    group(tokens, open, Delimiter::Bracket).map(|content| (content, open + 1))
}

/// Whether the element with this attribute is compiled only for tests: the attribute is `test`, or a `cfg`
/// that holds in no other build.
fn is_for_tests(attribute: &TokenStream) -> bool {
    let tokens: Vec<TokenTree> = attribute.clone().into_iter().collect();
    match word_at(&tokens, 0) {
        Some(word) if *word == "test" => tokens.len() == 1,
        Some(word) if *word == "cfg" => {
            group(&tokens, 1, Delimiter::Parenthesis).is_some_and(|condition| needs_test(&condition))
        }
        _ => false,
    }
}

/// Whether the condition of a `cfg` holds only in tests.
fn needs_test(condition: &TokenStream) -> bool {
    let tokens: Vec<TokenTree> = condition.clone().into_iter().collect();
    let inner = group(&tokens, 1, Delimiter::Parenthesis).unwrap_or_default();
    let inner: Vec<TokenTree> = inner.into_iter().collect();
    let mut parts = inner
        .split(|token| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ','))
        .filter(|part| !part.is_empty())
        .map(|part| needs_test(&part.iter().cloned().collect()));
    match word_at(&tokens, 0).map(ToString::to_string).as_deref() {
        Some("test") => true,
        Some("all") => parts.any(|needs| needs),
        Some("any") => parts.all(|needs| needs),
        _ => false,
    }
}

/// Returns the position behind the item, statement, field or match arm that begins at `at`, with or without
/// attributes.
fn after_element(tokens: &[TokenTree], mut at: usize) -> usize {
    while let Some((_, end)) = attribute(tokens, at) {
        at = end;
    }
    let words: Vec<String> =
        tokens[at..].iter().take(4).filter_map(as_word).map(ToString::to_string).collect();
    let is_one_of = |kinds: &[&str]| words.iter().any(|word| kinds.contains(&word.as_str()));
    // These items end with a semicolon, so a `{` inside them does not end them.
    let has_semicolon = is_one_of(&["use", "let", "static", "type", "const"]) && !is_one_of(&["fn"]);
    let is_item =
        is_one_of(&["fn", "mod", "impl", "struct", "enum", "trait", "union", "extern", "macro_rules"]);
    while at < tokens.len() {
        let ends = match &tokens[at] {
            TokenTree::Punct(mark) if mark.as_char() == ';' => true,
            TokenTree::Punct(mark) if mark.as_char() == ',' => !is_item && !has_semicolon,
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => !has_semicolon,
            _ => false,
        };
        at += 1;
        if ends {
            break;
        }
    }
    at
}

fn as_word(token: &TokenTree) -> Option<&Ident> {
    match token {
        TokenTree::Ident(word) => Some(word),
        _ => None,
    }
}

fn word_at(tokens: &[TokenTree], at: usize) -> Option<&Ident> {
    tokens.get(at).and_then(as_word)
}

fn is_punct(tokens: &[TokenTree], at: usize, mark: char) -> bool {
    matches!(tokens.get(at), Some(TokenTree::Punct(found)) if found.as_char() == mark)
}

fn is_path_separator(tokens: &[TokenTree], at: usize) -> bool {
    is_punct(tokens, at, ':') && is_punct(tokens, at + 1, ':')
}

/// Whether the dot before `at` is the second of two dots, so that no method call follows it.
fn is_range(tokens: &[TokenTree], at: usize) -> bool {
    at >= 2 && is_punct(tokens, at - 2, '.')
}

fn group(tokens: &[TokenTree], at: usize, delimiter: Delimiter) -> Option<TokenStream> {
    match tokens.get(at) {
        Some(TokenTree::Group(group)) if group.delimiter() == delimiter => Some(group.stream()),
        _ => None,
    }
}
