//! Markdown samples that check whether `shows_anything` and a platform's rendering agree.

/// Markdown that renders to nothing visible.
pub const UNSEEN: [&str; 20] = [
    "#",
    "> ",
    "- ",
    "* ",
    "1.\n2.",
    "&nbsp;",
    "&#8203;",
    "[]()",
    "[ ](<>)",
    "![]()",
    "*\u{200b}*",
    "` `",
    "```\n\n```",
    "| | |\n|-|-|\n| | |",
    "> - #",
    "<br><br>",
    "\u{200b}",
    "\u{2800}",
    "\u{fe0f}",
    "\u{e0020}",
];

/// Markdown, and text that its rendering must contain.
pub const SEEN: [(&str, &str); 12] = [
    ("Hello.", "Hello."),
    ("[Answer]: 42", "[Answer]: 42"),
    ("[Answer]:\n42", "42"),
    ("[Note]: done", "[Note]: done"),
    ("[1]: https://example.org", "https://example.org"),
    ("[//]: # (x)", "[//]: # (x)"),
    ("Paris.\n\n[Source]: https://a.test\n[Source]: https://b.test", "https://b.test"),
    ("> [Note]: done\n> more", "[Note]: done"),
    ("- one\n\n  [Note]: done\n- two", "[Note]: done"),
    ("[](https://example.org)", "https://example.org"),
    ("42.", "42."),
    ("See [the page][1].\n\n[1]: https://example.org", "the page"),
];

/// Pieces of Markdown as agents write it, for samples that are put together at random. `W` stands for a word.
///
/// A word is not put where Markdown has no place for one: in a link's destination or title, or in the label of a reference.
pub const PIECES: &[&str] = &[
    "W",
    "W W",
    " ",
    "\n",
    "\n\n",
    "  \n",
    "\t",
    "**W**",
    "*W*",
    "_W_",
    "~~W~~",
    "***W*** W",
    "`W`",
    "``W ` W``",
    "`W|W`",
    "[W](https://d.test)",
    "[W](there)",
    "[W](javascript:x)",
    "[W](<https://d.test> \"t\")",
    "![W](https://d.test/p.png)",
    "[![W](https://d.test)](https://d.test)",
    "[W [W]](https://d.test)",
    "<https://d.test/W>",
    "https://d.test/W",
    "<b>W</b>",
    "<!-- W -->",
    "<div>\nW\n</div>\n",
    "<br>",
    "# W\n",
    "#### W\n",
    "##### W **W** ##\n",
    "W\n===\n",
    "W\n---\n",
    "---\n",
    "> W\n",
    "> ",
    "> > W\n",
    "- W\n",
    "  - W\n",
    "- ",
    "1. W\n",
    "7) W\n",
    "- [ ] W\n",
    "- [x] W\n",
    "    W\n",
    "```\nW\n```\n",
    "```rust\nW\n",
    "~~~\nW\n~~~\n",
    "| W | W |\n|---|---|\n| W | W |\n",
    "| W | W |\n|---|:-:|\n| `W | W` | W |\n| W || W | W |\n",
    "| W |\n|---|\n| W | **W** | [W](https://d.test) |\n",
    "| W | W |\n|--|--|\n| W |\n",
    "| W | W |\n|--|--|\n| | W |\n| W W | |\n",
    "W | W\n--|--\nW | W\n",
    "| W | W |\n",
    "| `W | W |\n",
    "|W|\n",
    "|",
    "\\|",
    "W|W",
    "|--|\n",
    "|--|--|\n",
    "[W]: W\n",
    "[W]: https://d.test\n",
    "[W]",
    "[^W]",
    "[^W]: W\n",
    "\\W",
    "\\",
    "&amp;W",
    "&W;",
    "$W$",
    "\"W\" -- W...",
    "{W}",
    "[",
    "](https://d.test)",
    "*",
    "**",
    "_",
    "`",
    "```",
    "~~",
    "<",
    "![",
    "&",
    "🎉W",
];

/// A sample of these [`PIECES`], and its words: all different, and none a part of another. No word follows the marks of a
/// code block, where it would be the name of a language.
#[must_use]
pub fn sample(pieces: &[usize]) -> (String, Vec<String>) {
    let (mut text, mut words) = (String::new(), Vec::new());
    for piece in pieces {
        for (index, between) in PIECES[piece % PIECES.len()].split('W').enumerate() {
            if index > 0 {
                let word = format!("w{}x", words.len());
                after_fence(&mut text);
                text.push_str(&word);
                words.push(word);
            }
            if !between.starts_with(['\n', text.chars().next_back().unwrap_or('\n')]) {
                after_fence(&mut text);
            }
            text.push_str(between);
        }
    }
    (text, words)
}

/// Begins a new line if the text ends with the marks of a code block.
fn after_fence(text: &mut String) {
    if text.ends_with("```") || text.ends_with("~~~") {
        text.push('\n');
    }
}
