//! Checks that the links of Markdown pages lead to existing files and headings, and rewrites links that lead
//! out of the book.

use super::Pages;
use std::collections::BTreeSet;
use std::path::Path;

/// A link in a page, with its position in the text and its target.
struct Link<'a> {
    at: usize,
    target: &'a str,
}

/// Finds all links and pictures outside code.
fn links(text: &str) -> Vec<Link<'_>> {
    let mut found = Vec::new();
    let (mut is_code, mut begin) = (false, 0);
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code && !line.starts_with("    ") {
            found.extend(in_line(line).map(|Link { at, target }| Link { at: begin + at, target }));
        }
        begin += line.len();
    }
    found
}

fn in_line(line: &str) -> impl Iterator<Item = Link<'_>> {
    line.match_indices("](").filter_map(move |(at, bracket)| {
        // After an odd number of backquotes the text is code.
        let is_code = line[..at].matches('`').count() % 2 == 1;
        let (target, _) = line[at + bracket.len()..].split_once(')')?;
        (!is_code).then_some(Link { at: at + bracket.len(), target })
    })
}

fn is_of_the_web(target: &str) -> bool {
    target.starts_with("https://") || target.starts_with("http://")
}

/// Returns the file that `target` means in the page `place`. Both are paths in the repository.
fn resolved(place: &str, target: &str) -> String {
    let mut parts: Vec<&str> = place.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns the anchors of a page's headings. GitHub and mdbook make the same anchors.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if let Some(heading) = line.strip_prefix('#').filter(|_| !is_code) {
            let heading = heading.trim_start_matches('#').trim().to_lowercase();
            let is_kept = |c: &char| c.is_alphanumeric() || ['-', '_', ' '].contains(c);
            found.insert(heading.chars().filter(is_kept).map(|c| if c == ' ' { '-' } else { c }).collect());
        }
    }
    found
}

/// Returns a message for each broken link.
pub(super) fn broken(pages: &Pages, repository: &Path) -> Vec<String> {
    let mut wrong = Vec::new();
    for (place, text) in pages {
        for Link { target, .. } in links(text).iter().filter(|link| !is_of_the_web(link.target)) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { place.clone() } else { resolved(place, file) };
            if !pages.contains_key(&file) && !repository.join(&file).exists() {
                wrong.push(format!("{place}: {target} leads to no file"));
            } else if !anchor.is_empty()
                && !pages.get(&file).is_some_and(|text| anchors(text).contains(anchor))
            {
                wrong.push(format!("{place}: {target} leads to no heading"));
            }
        }
    }
    wrong
}

/// Returns the page with its links out of the book changed to lead to the address `repository`, because the
/// book is published without the files outside it.
pub(super) fn led_out(place: &str, text: &str, repository: &str) -> String {
    let mut led = String::new();
    let mut done = 0;
    for Link { at, target } in links(text) {
        let file = resolved(place, target);
        if !is_of_the_web(target) && !target.starts_with('#') && !file.starts_with("docs/") {
            led += &format!("{}{repository}{file}", &text[done..at]);
            done = at + target.len();
        }
    }
    led + &text[done..]
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A head, of two\n[one](b.md#c-d) and ![two](../x/y.png) `[no](link)`\n\
        ```\n# [no](code)\n```\n[up](../../README.md) [web](https://example.org/)\n";

    #[test]
    fn links_are_found_outside_code() {
        let targets: Vec<&str> = links(PAGE).iter().map(|link| link.target).collect();
        assert_eq!(targets, ["b.md#c-d", "../x/y.png", "../../README.md", "https://example.org/"]);
    }

    #[test]
    fn a_link_to_no_file_or_no_heading_is_broken() {
        let page = |text: &str| text.to_owned();
        let nowhere = Path::new("/nowhere");
        let pages: Pages =
            [("docs/t/a.md".to_owned(), page(PAGE)), ("docs/t/b.md".to_owned(), page("## C d\n"))].into();
        assert_eq!(
            broken(&pages, nowhere),
            ["docs/t/a.md: ../x/y.png leads to no file", "docs/t/a.md: ../../README.md leads to no file"]
        );
        let pages: Pages = [("a.md".to_owned(), page("# C\n[x](#d)\n[y](#c)\n"))].into();
        assert_eq!(broken(&pages, nowhere), ["a.md: #d leads to no heading"]);
    }

    #[test]
    fn links_out_of_the_book_lead_to_the_repository() {
        let led = led_out("docs/t/a.md", PAGE, "R/");
        assert!(
            led.contains("[one](b.md#c-d) and ![two](../x/y.png)")
                && led.contains("[up](R/README.md) [web](https"),
            "{led}"
        );
    }
}
