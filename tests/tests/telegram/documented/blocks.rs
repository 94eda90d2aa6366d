//! The blocks of code in the documents, and the commands in them.

use std::{fmt, path::Path};

/// A block between two fences.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) page: String,
    /// The number of its first line in the page.
    pub(super) line: usize,
    pub(super) language: String,
    /// Without the indentation of the fences.
    pub(super) text: String,
}

/// A command and where it is written.
#[derive(Clone, Debug)]
pub(super) struct Documented {
    pub(super) page: String,
    pub(super) line: usize,
    pub(super) text: String,
}

impl fmt::Display for Documented {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.page, self.line, self.text)
    }
}

/// The README and every page of `docs/`.
pub(super) fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let docs = root.join("docs").read_dir().expect("the documents are there").flatten().map(|entry| entry.path());
    let mut paths: Vec<_> = docs.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect();
    paths.sort();
    paths.insert(0, root.join("README.md"));
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), std::fs::read_to_string(path).expect("a page is read"))).collect()
}

pub(super) fn blocks(page: &str, text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open: Option<usize> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let fence = line.trim_start().strip_prefix("```");
        match (open, fence) {
            (None, Some(language)) => {
                open = Some(line.len() - line.trim_start().len());
                let (page, language) = (page.to_owned(), language.trim().to_owned());
                blocks.push(Block { page, line: number + 1, language, text: String::new() });
            }
            (Some(_), Some("")) => open = None,
            (Some(indent), _) => {
                let block = blocks.last_mut().expect("a block is open");
                block.text.push_str(line.get(indent..).unwrap_or_default());
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

impl Block {
    pub(super) fn is_shell(&self) -> bool {
        ["", "sh", "bash", "console"].contains(&&*self.language)
    }

    /// Its commands that call `rejoinder` or `curl`, or make a folder for one. Where lines begin with `$`, only they are commands.
    pub(super) fn commands(&self) -> Vec<Documented> {
        let has_prompts = self.text.lines().any(|line| line.starts_with("$ "));
        let mut commands: Vec<Documented> = Vec::new();
        // What stands between this line and the next one of the same command.
        let mut joint: Option<&str> = None;
        for (line, text) in (self.line..).zip(self.text.lines()) {
            let (text, next) = match text.strip_suffix('\\') {
                Some(text) => (text, Some("")),
                None => (text, sets_variable(text).then_some("\n")),
            };
            if let Some(joint) = std::mem::replace(&mut joint, next) {
                commands.last_mut().expect("a line before").text.extend([joint, text]);
                continue;
            }
            let text = if has_prompts { text.strip_prefix("$ ").unwrap_or_default() } else { text };
            commands.push(Documented { page: self.page.clone(), line, text: text.trim().to_owned() });
        }
        commands.retain(|command| calls(&command.text));
        commands
    }
}

/// Whether the next line needs this one.
fn sets_variable(line: &str) -> bool {
    let name = line.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// Whether a line of a shell calls `rejoinder` or `curl`.
fn calls(line: &str) -> bool {
    let is_call = |(at, word): (usize, &str)| {
        let (before, after) = (line[..at].trim_end(), &line[at + word.len()..]);
        let begins = before.is_empty()
            || before.ends_with(['|', ';', '&', '('])
            || ["sudo", "exec rejoinder", "* * *"].iter().any(|end| before.ends_with(end));
        begins && (after.is_empty() || after.starts_with(' '))
    };
    line.starts_with("mkdir -p ~") || ["rejoinder", "curl"].iter().any(|name| line.match_indices(name).any(is_call))
}

/// The commands of `rejoinder` in running text, and in the help that `commands.md` shows.
pub(super) fn mentioned(page: &str, text: &str) -> Vec<Documented> {
    let mut mentioned = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        let spans = content.split('`').skip(1).step_by(2).filter(|span| span.starts_with("rejoinder "));
        let example = content.strip_prefix("  rejoinder ").map(|rest| format!("rejoinder {rest}"));
        let example = example.map(|example| example.split("  ").next().unwrap_or_default().to_owned());
        for text in spans.map(ToOwned::to_owned).chain(example) {
            mentioned.push(Documented { page: page.to_owned(), line, text });
        }
    }
    mentioned
}

/// The calls of `rejoinder` in a line, to be parsed only: with `--help` at their end.
pub(super) fn to_be_parsed(line: &str) -> Vec<String> {
    let begins = line.match_indices("rejoinder").filter(|(at, word)| {
        let before = &line[..*at];
        let stands_alone = before.is_empty() || before.ends_with([' ', '(']);
        stands_alone && line[at + word.len()..].starts_with(' ') && !line[at + word.len()..].starts_with(" rejoinder")
    });
    let call = |(at, word): (usize, &str)| {
        let rest = &line[at + word.len()..];
        let ends = [" | ", " && ", " > ", " < ", " #", ";"].iter().filter_map(|end| rest.find(end));
        let end = ends.chain(rest.find(')').filter(|_| !rest.contains("$("))).min();
        let words = rest[..end.unwrap_or(rest.len())]
            .replace(['<', '>', '[', ']', '…'], "")
            .replace("SHELL", "bash")
            .replace("GATEWAY", "hermes")
            .replace("FROM TO", "sqlite:FROM postgres://TO/DATABASE");
        format!("rejoinder {} --help", words.trim())
    };
    begins.map(call).collect()
}
