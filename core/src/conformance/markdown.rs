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
