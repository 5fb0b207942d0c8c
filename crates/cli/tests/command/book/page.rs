//! Parses a page of Markdown into the blocks and figures that the tests check.

/// A page of the book.
#[derive(Default)]
pub(super) struct Page {
    pub blocks: Vec<Block>,
    /// The commands in the text, which stand between backquotes.
    pub named: Vec<String>,
    /// The text of the page without its blocks.
    text: String,
}

/// A block of the page between fences.
pub(super) enum Block {
    /// Commands with their output. If `is_dry`, they are executed with `--dry-run`.
    Console { commands: Vec<Command>, is_dry: bool },
    /// A file with its name.
    File { name: String, text: String },
    /// Any other block, with the words behind its opening fence.
    Other { mark: String, text: String },
}

/// A command, its exit code, and the output that the page shows.
pub(super) struct Command {
    pub typed: String,
    pub code: i32,
    pub shown: Vec<String>,
}

impl Page {
    pub(super) fn read(markdown: &str) -> Page {
        let mut page = Page::default();
        let mut lines = markdown.lines();
        while let Some(line) = lines.next() {
            match line.trim_start().strip_prefix("```") {
                Some(mark) => {
                    let block = lines.by_ref().take_while(|line| !line.trim_start().starts_with("```"));
                    page.blocks.push(Block::read(mark.trim(), block.map(str::to_owned).collect()));
                }
                None => page.text += &format!("{line}\n"),
            }
        }
        page.named =
            page.text.split('`').skip(1).step_by(2).filter(|code| is_complete(code)).map(one_line).collect();
        page
    }

    /// Returns the figures in the text that no command of the page prints.
    pub(super) fn unknown_figures(&self) -> Vec<String> {
        let printed: Vec<&String> = self
            .blocks
            .iter()
            .filter_map(|block| match block {
                Block::Console { commands, .. } => Some(commands),
                _ => None,
            })
            .flatten()
            .flat_map(|command| &command.shown)
            .collect();
        let code = self.text.split('`').step_by(2).collect::<Vec<_>>().join(" ");
        let figures =
            code.split(|c: char| !c.is_ascii_digit() && c != '.').map(|figure| figure.trim_matches('.'));
        // Ignore numbers below ten, because such a number is as often a count as a figure.
        let figures = figures.filter(|figure| figure.len() > 1);
        let is_unknown = |figure: &&str| !printed.iter().any(|line| has_number(line, figure));
        figures.filter(is_unknown).map(|figure| format!("no command of the page prints {figure}")).collect()
    }
}

/// Whether `line` contains `figure` as a whole number and not as a part of another one.
fn has_number(line: &str, figure: &str) -> bool {
    line.split(|c: char| !c.is_ascii_digit() && c != '.').any(|number| number.trim_matches('.') == figure)
}

fn one_line(code: &str) -> String {
    code.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether `code` is a complete command that executes runs.
fn is_complete(code: &str) -> bool {
    let mut words = code.split_whitespace();
    let runs = ["pool", "gc", "replay", "bench", "profile", "study"];
    words.next() == Some("fulgurite")
        && words.next().is_some_and(|command| runs.contains(&command))
        && words.clone().next().is_some_and(|first| first != "-")
        && !code.contains('…')
        && !words.any(|word| {
            word.contains(|c: char| c.is_ascii_uppercase()) && !word.contains(|c: char| c.is_ascii_digit())
        })
}

impl Block {
    fn read(mark: &str, lines: Vec<String>) -> Block {
        let mut words = mark.split_whitespace();
        let kind = words.next().unwrap_or_default();
        let option = words.next().unwrap_or_default();
        let text = || lines.join("\n") + "\n";
        if kind == "console" {
            return Block::Console { commands: commands(&lines), is_dry: option == "dry-run" };
        }
        match option.strip_prefix("file=") {
            Some(name) => Block::File { name: name.to_owned(), text: text() },
            None => Block::Other { mark: mark.to_owned(), text: text() },
        }
    }
}

fn commands(lines: &[String]) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    for line in lines {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(typed), _) => commands.push(Command::read(typed)),
            // A line that ends with a backslash continues on this line.
            (None, Some(last)) if last.typed.ends_with('\\') => {
                let typed = last.typed.trim_end_matches('\\').to_owned() + line.trim_start();
                *last = Command::read(&typed);
            }
            (None, Some(last)) => last.shown.push(line.trim_end().to_owned()),
            (None, None) => panic!("a console block begins with `$ `: {line}"),
        }
    }
    commands
}

impl Command {
    fn read(typed: &str) -> Command {
        let (typed, comment) = typed.split_once("   #").unwrap_or((typed, ""));
        let code = comment.split_once("exits with ").and_then(|(_, code)| code.get(..1)?.parse().ok());
        Command { typed: typed.trim_end().to_owned(), code: code.unwrap_or(0), shown: Vec::new() }
    }
}

/// Whether the printed output is the output that the page shows. If the page shows none, any output matches.
pub(super) fn is_as_shown(shown: &[String], printed: &str) -> bool {
    let shown: Vec<&str> = shown.iter().map(String::as_str).filter(|line| !line.is_empty()).collect();
    let printed: Vec<&str> = printed.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    shown.is_empty() || matches(&shown, &printed, &|shown, printed| *shown == "…" || is_like(shown, printed))
}

/// Whether a printed line matches the shown line, in which `…` matches any text.
fn is_like(shown: &str, printed: &str) -> bool {
    let parts: Vec<&str> = shown.split('…').collect();
    let (first, last) = (parts[0], parts[parts.len() - 1]);
    if parts.len() == 1 {
        return shown == printed;
    }
    let Some(mut rest) = printed.strip_prefix(first).and_then(|rest| rest.strip_suffix(last)) else {
        return false;
    };
    parts[1..parts.len() - 1].iter().all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

/// Whether the printed lines match the shown lines in order. A shown line `…` matches any number of lines.
fn matches(shown: &[&str], printed: &[&str], like: &dyn Fn(&&str, &str) -> bool) -> bool {
    match (shown, printed) {
        ([], []) => true,
        ([], _) => false,
        (["…", rest @ ..], _) => (0..=printed.len()).any(|from| matches(rest, &printed[from..], like)),
        (_, []) => false,
        ([first, shown @ ..], [line, printed @ ..]) => like(first, line) && matches(shown, printed, like),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shows(shown: &str, printed: &str) -> bool {
        is_as_shown(&shown.lines().map(str::to_owned).collect::<Vec<_>>(), printed)
    }

    /// An ellipsis matches the omitted text, and no other difference is accepted.
    #[test]
    fn shown_output_is_compared_exactly() {
        assert!(shows("a\n…\nd", "a\nb\nc\nd\n") && shows("a …s", "a 5 s") && shows("", "anything"));
        assert!(shows("…\nb", "a\n\nb\n"), "empty lines do not count");
        for (shown, printed) in
            [("a", "a\nb"), ("a\nb", "b\na"), ("a …s", "a 5 ms b"), ("1.5", "1.6"), ("…\nb\n…\nb", "b")]
        {
            assert!(!shows(shown, printed), "{shown} | {printed}");
        }
    }

    #[test]
    fn a_page_is_parsed() {
        let page = Page::read(
            "It takes 63.8 s, in `fulgurite pool zipf` and `fulgurite pool TRACE`.\n```console\n$ x --a \\\n  b   # \
                exits with 1\n63.9 s\n```\n```toml file=a.toml\na\n```\n",
        );
        assert_eq!(page.named, ["fulgurite pool zipf"]);
        assert_eq!(page.unknown_figures(), ["no command of the page prints 63.8"]);
        let Block::Console { commands, is_dry: false } = &page.blocks[0] else { panic!() };
        assert_eq!((commands[0].typed.as_str(), commands[0].code), ("x --a b", 1));
        assert_eq!(commands[0].shown, ["63.9 s"]);
        assert!(matches!(&page.blocks[1], Block::File { name, text } if name == "a.toml" && text == "a\n"));
    }
}
