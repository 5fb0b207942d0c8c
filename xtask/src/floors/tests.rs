//! Tests the checks of imports on small crates, which are given as text.

use super::Floors;

/// Returns the messages about files given as (name, text).
fn complaints(files: &[(&str, &str)]) -> String {
    let read = |name: &str| files.iter().find(|(file, _)| *file == name).map(|(_, text)| text.to_string());
    Floors::new("", &read).unwrap().complaints()
}

/// Returns the imports between the files, as `a.rs -> b.rs: Name`.
fn arrows(files: &[(&str, &str)]) -> Vec<String> {
    let read = |name: &str| files.iter().find(|(file, _)| *file == name).map(|(_, text)| text.to_string());
    let floors = Floors::new("", &read).unwrap();
    let name = |file: usize| floors.sources.files[file].name.clone();
    floors
        .arrows
        .iter()
        .map(|arrow| format!("{} -> {}: {}", name(arrow.from), name(arrow.to), arrow.name))
        .collect()
}

#[test]
fn a_circle_is_named_with_the_imports_that_tie_it() {
    let text = complaints(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b::B; pub struct A(B);"),
        ("b.rs", "pub struct B; fn f() -> crate::a::A { loop {} }"),
        ("c.rs", "use crate::a::A;"),
    ]);
    assert!(text.contains("a circle of 2 files:\n  a.rs -> b.rs: B\n  b.rs -> a.rs: A\n"), "{text}");
    assert!(!text.contains("c.rs"), "{text}");
}

#[test]
fn a_parent_and_its_child_may_be_a_circle() {
    let text = complaints(&[
        ("lib.rs", "mod a; struct Shared; fn f() { a::g() }"),
        ("a.rs", "use super::Shared; pub fn g() {}"),
    ]);
    assert!(text.contains("lib.rs -> a.rs: g\n  a.rs -> lib.rs: Shared"), "{text}");
}

#[test]
fn a_module_imports_only_from_those_above_it() {
    let files = |mods| {
        [
            ("lib.rs", mods),
            ("a.rs", "use crate::b::c::C;"),
            ("b/mod.rs", "pub mod c;"),
            ("b/c.rs", "pub struct C;"),
        ]
    };
    assert_eq!(complaints(&files("mod b;\nmod a;")), "");
    let text = complaints(&files("mod a;\nmod b;"));
    assert!(text.contains("a.rs:1: `C` is in `mod b`, declared after `mod a` (lib.rs:2)"), "{text}");
    assert!(text.contains("lib.rs: an order that works: b, a\n"), "{text}");
}

#[test]
fn folders_that_import_from_each_other_have_no_order() {
    let text = complaints(&[
        ("lib.rs", "mod a; mod b;"),
        ("a/mod.rs", "mod x; mod y;"),
        ("a/x.rs", "pub struct X;"),
        ("a/y.rs", "use crate::b::B;"),
        ("b.rs", "use crate::a::x::X; pub struct B;"),
    ]);
    assert!(text.contains("lib.rs: no order works for a, b:\n  a -> b: B\n  b -> a: X\n"), "{text}");
    assert!(!text.contains("circle"), "{text}");
}

#[test]
fn a_reexport_is_no_import_and_leads_to_the_definition() {
    let files = [
        ("lib.rs", "mod a; mod user; pub use a::Name;"),
        ("a/mod.rs", "mod b; pub(crate) use b::Inner as Name; pub use b::*;"),
        ("a/b.rs", "pub struct Inner; pub struct Other;"),
        ("user.rs", "use crate::Name; fn f(_: Name) -> crate::a::Other { loop {} }"),
    ];
    assert_eq!(arrows(&files), ["user.rs -> a/b.rs: Name", "user.rs -> a/b.rs: Other"]);
}

#[test]
fn a_reexported_name_that_the_file_uses_is_an_import() {
    let files = |text| [("lib.rs", text), ("a.rs", "pub struct Name; pub fn call() {}")];
    assert_eq!(arrows(&files("mod a; pub use a::{Name, call};")), [""; 0]);
    assert_eq!(arrows(&files("mod a; pub use a::{Name, call}; fn f(_: Name) { call() }")).len(), 2);
}

#[test]
fn a_glob_counts_by_the_names_that_are_used() {
    let files =
        |text| [("lib.rs", "mod a; mod b;"), ("a.rs", "pub struct A; pub struct Unused;"), ("b.rs", text)];
    assert_eq!(arrows(&files("use super::a::*; fn f(_: A) {}")), ["b.rs -> a.rs: A"]);
    assert_eq!(arrows(&files("use super::a::*;")), [""; 0]);
}

#[test]
fn tests_do_not_count() {
    let files = [
        ("lib.rs", "mod a; mod b; #[cfg(test)] mod tests;"),
        ("a.rs", "pub struct A;"),
        (
            "b.rs",
            "#[cfg(test)] use crate::a::A; #[cfg(all(test, unix))] fn f<A, B>(_: crate::a::A) {}
             struct B { #[cfg(test)] field: crate::a::A, other: u8 }
             #[test] fn t() { crate::a::A; }
             #[cfg(test)] mod tests { use crate::a::A; }",
        ),
    ];
    assert_eq!(arrows(&files), [""; 0]);
    // An element that is also compiled for other builds than tests counts.
    let files = [files[0], files[1], ("b.rs", "#[cfg(any(test, feature = \"x\"))] use crate::a::A;")];
    assert_eq!(arrows(&files), ["b.rs -> a.rs: A"]);
    let files = [files[0], files[1], ("b.rs", "struct B { #[cfg(test)] f: u8, other: crate::a::A }")];
    assert_eq!(arrows(&files), ["b.rs -> a.rs: A"]);
}

#[test]
fn the_body_of_a_macro_counts_and_strings_and_comments_do_not() {
    let files = |text| [("lib.rs", "mod a; mod b;"), ("a.rs", "macro! { pub enum A {} }"), ("b.rs", text)];
    assert_eq!(arrows(&files("fn f() { call!(x, crate::a::A) }")), ["b.rs -> a.rs: A"]);
    assert_eq!(arrows(&files("macro_rules! m { () => { $crate::a::A } }")), ["b.rs -> a.rs: A"]);
    assert_eq!(arrows(&files("/// [`crate::a::A`]\nfn f() { \"crate::a::A\"; /* crate::a::A */ }")), [""; 0]);
}

#[test]
fn an_imported_module_counts_by_what_is_taken_from_it() {
    let files = |text| {
        [
            ("lib.rs", "mod a; mod b;"),
            ("a/mod.rs", "pub mod c; pub use c::C;"),
            ("a/c.rs", "pub struct C;"),
            ("b.rs", text),
        ]
    };
    assert_eq!(arrows(&files("use crate::a; fn f(_: a::C) {}")), ["b.rs -> a/c.rs: C"]);
    assert_eq!(arrows(&files("use crate::a::{self}; fn f(_: a::c::C) {}")), ["b.rs -> a/c.rs: C"]);
    assert_eq!(arrows(&files("use crate::a;")), [""; 0]);
}

#[test]
fn an_exported_macro_leads_to_its_file() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "#[macro_export] macro_rules! make { () => {} }"),
        ("b.rs", "crate::make!();"),
    ];
    assert_eq!(arrows(&files), ["b.rs -> a.rs: make"]);
}

#[test]
fn inner_modules_belong_to_their_file() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub mod inner { use super::Outer; pub struct Inner(Outer); } pub struct Outer;"),
        ("b.rs", "use crate::a::inner::Inner;"),
    ];
    assert_eq!(arrows(&files), ["b.rs -> a.rs: Inner"]);
}
