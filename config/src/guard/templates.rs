//! `[guard.templates]`: the texts that people see, in several languages.
//!
//! To add a built-in text, add it, with a comment, to `default.toml`, and to every file in `words/`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::LazyLock,
};

use rejoinder_core::{Language, is_blank};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

use super::scope::check_scope;
use crate::{
    check::Checks,
    names::{hint, list, unknown},
    node::DEFAULT_TOML,
    text::{NAME_RULE, is_name},
};

/// The templates that the gateway itself uses, in the order of `default.toml`, which says when. Ladders may name others.
pub static TEMPLATES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let (_, table) = DEFAULT_TOML.split_once("\n[guard.templates]\n").expect("the manual has the table");
    let lines = table.lines().take_while(|line| !line.starts_with('[')).filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| Some(line.split_once(" = ")?.0)).collect()
});

/// How the templates that describe commands in menus begin, and how long their texts may be. Discord takes no more.
const MENU: (&str, usize) = ("menu_", 100);

/// The texts that people see, with those for one language, platform or channel.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Templates {
    all: BTreeMap<String, Template>,
    /// Those of them that are built in. A text that the operator writes as it is here counts as built in.
    #[serde(skip)]
    built_in: BTreeMap<String, Template>,
}

/// An entry of the table: a text, or a table of texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Template {
    Text(String),
    /// The texts of the language, platform or channel that the key names. Those of a platform or channel may be in tables by
    /// language.
    Table(BTreeMap<String, Template>),
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrTable;
        impl<'de> Visitor<'de> for TextOrTable {
            type Value = Template;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, or a table of texts for one language, platform or channel")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Template, E> {
                Ok(Template::Text(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Template, A::Error> {
                BTreeMap::deserialize(MapAccessDeserializer::new(table)).map(Template::Table)
            }
        }
        deserializer.deserialize_str(TextOrTable)
    }
}

impl Template {
    const fn is_text(&self) -> bool {
        matches!(self, Self::Text(_))
    }
}

fn find<'a>(texts: &'a BTreeMap<String, Template>, path: &[&str]) -> Option<&'a str> {
    let (name, rest) = path.split_first()?;
    match texts.get(*name)? {
        Template::Text(text) => rest.is_empty().then_some(text),
        Template::Table(inner) => find(inner, rest),
    }
}

impl Templates {
    /// The text of the template `name` on `channel` (`webhook.siri`) in a language: the first that there is of what the
    /// operator wrote in this language, what they wrote without a language, and what is built in. A text for the channel
    /// comes before one for its platform, and that before the general one; but a built-in text for the platform comes
    /// before what the operator wrote for all channels and languages. `None` if there is no such template.
    pub fn text(&self, channel: &str, language: Language, name: &str) -> Option<&str> {
        let platform = channel.split_once('.').map_or(channel, |(platform, _)| platform);
        let built_in = |path: &[&str]| find(&self.built_in, path);
        let written = |path: &[&str]| find(&self.all, path).filter(|text| built_in(path) != Some(text));
        let language = language.as_str();
        let is_english = language == Language::ENGLISH.as_str();
        // Built-in texts are English if they name no language.
        let translated = |path: &[&str], english: &[&str]| built_in(if is_english { english } else { path });
        written(&[channel, language, name])
            .or_else(|| written(&[platform, language, name]))
            .or_else(|| written(&[language, name]))
            .or_else(|| written(&[channel, name]))
            .or_else(|| written(&[platform, name]))
            .or_else(|| translated(&[platform, language, name], &[platform, name]))
            .or_else(|| written(&[name]))
            .or_else(|| translated(&[language, name], &[name]))
            .or_else(|| built_in(&[platform, name]))
            .or_else(|| built_in(&[name]))
    }

    /// The text of every template on `channel` in a language, by name.
    pub fn for_channel(&self, channel: &str, language: Language) -> BTreeMap<&str, &str> {
        let names = self.all.iter().filter(|(_, template)| template.is_text());
        names.filter_map(|(name, _)| Some((name.as_str(), self.text(channel, language, name)?))).collect()
    }

    /// Tells the built-in texts from those that the operator wrote.
    pub(super) fn know_built_in(&mut self, built_in: &Self) {
        self.built_in.clone_from(&built_in.all);
    }

    /// The names that a ladder may use.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.all.iter().filter(|(_, template)| template.is_text()).map(|(name, _)| name.clone()).collect()
    }

    /// `used` are the names that ladders use. A template that neither a ladder nor the gateway uses is a mistake.
    pub(super) fn check(&self, used: &BTreeSet<&str>, checks: &mut Checks<'_>) {
        for (name, template) in &self.all {
            match template {
                Template::Text(text) => {
                    check_text(&["templates", name], text, checks);
                    if !is_name(name) {
                        checks.wrong(checks.key(&["templates", name]), NAME_RULE);
                    } else if !TEMPLATES.contains(&&**name)
                        && !used.contains(&**name)
                        && !checks.names.said.contains(name)
                    {
                        let hint = hint(name, TEMPLATES.iter().copied());
                        let what = format!("is not used by the gateway or a ladder: {hint}");
                        checks.wrong(checks.key(&["templates", name]), what);
                    }
                }
                Template::Table(own) if checks.is_language(name) => {
                    self.check_texts(&["templates", name], own, checks);
                    check_complete(name, own, checks);
                }
                Template::Table(own) => {
                    check_scope("templates", name, checks);
                    let (texts, languages): (BTreeMap<_, _>, BTreeMap<_, _>) =
                        own.clone().into_iter().partition(|(_, template)| template.is_text());
                    self.check_texts(&["templates", name], &texts, checks);
                    for (language, texts) in &languages {
                        checks.knows_language(checks.key(&["templates", name, language]), language.as_str());
                        if let Template::Table(texts) = texts {
                            self.check_texts(&["templates", name, language], texts, checks);
                        }
                    }
                }
            }
        }
    }

    /// Checks texts that replace others of the same name.
    fn check_texts(&self, table: &[&str], texts: &BTreeMap<String, Template>, checks: &mut Checks<'_>) {
        for (name, template) in texts {
            let key = [table, &[name.as_str()]].concat();
            match template {
                Template::Text(text) => check_text(&key, text, checks),
                Template::Table(_) => checks.wrong(checks.key(&key), "must be text, not a table"),
            }
            if !self.all.get(name).is_some_and(Template::is_text) {
                let known = self.all.iter().filter(|(_, known)| known.is_text());
                checks.wrong(checks.key(&key), unknown(name, known.map(|(name, _)| name.as_str())));
            }
        }
    }
}

/// Reports the texts of the gateway that a language does not have. English ones have no need of a table.
fn check_complete(language: &str, texts: &BTreeMap<String, Template>, checks: &mut Checks<'_>) {
    let mut missing = TEMPLATES.iter().copied().filter(|name| !texts.contains_key(*name)).peekable();
    if language != Language::ENGLISH.as_str() && missing.peek().is_some() {
        let what = format!("has no text for {}: a language needs all of them", list(missing, "and"));
        checks.wrong(checks.key(&["templates", language]), what);
    }
}

fn check_text(names: &[&str], text: &str, checks: &mut Checks<'_>) {
    let (menu, most) = MENU;
    if is_blank(text) {
        checks.wrong(checks.key(names), "is empty: people would see nothing");
    } else if names.last().is_some_and(|name| name.starts_with(menu))
        && (text.contains('\n') || text.chars().count() > most)
    {
        checks.wrong(checks.key(names), format!("must be one line of at most {most} characters, for menus"));
    }
}
