//! The texts that people see, in several languages.

use std::{collections::BTreeSet, fmt::Write as _};

use rejoinder_config::{Guard, TEMPLATES};
use rejoinder_core::Language;

use crate::{BUILD, Machine};

fn language(tag: &str) -> Language {
    Language::of(tag).expect("it is a language")
}

fn guard(toml: &str) -> Guard {
    Machine::with_toml(toml).config().guard
}

/// The places in a text that are filled in.
fn placeholders(text: &str) -> BTreeSet<&str> {
    text.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name).collect()
}

/// The commands that a text names.
fn commands(text: &str) -> BTreeSet<&str> {
    text.split_whitespace().filter(|word| word.starts_with('/')).map(|word| word.trim_end_matches(['.', ','])).collect()
}

#[test]
fn every_built_in_language_has_every_text_with_the_same_placeholders() {
    let guard = Machine::new().config().guard;
    assert_eq!(guard.languages, ["de", "en", "es"].map(language).into());

    for language in &guard.languages {
        let templates = guard.templates.for_channel("", *language);
        assert_eq!(templates.keys().copied().collect::<BTreeSet<_>>(), TEMPLATES.iter().copied().collect());
        for (name, text) in templates {
            let english = guard.templates.text("", Language::ENGLISH, name).expect("it is there");
            assert_eq!(placeholders(text), placeholders(english), "{language} {name}");
            assert_eq!(commands(text), commands(english), "{language} {name}");
            let is_same = text == english && *language != Language::ENGLISH;
            assert!(!is_same || name == "help_command", "{language} {name} is not translated");
        }
        let question = guard.clarify.question("what_next", *language).expect("it is there");
        assert_eq!(question.choices.len(), 3, "{language}");
    }
    let asked = |tag| guard.clarify.question("what_next", language(tag)).map(|question| question.text);
    assert_ne!(asked("de"), asked("en"));
    assert_ne!(asked("es"), asked("en"));
}

/// What a channel has in a language comes before what its platform has, and that before the general one.
#[test]
fn what_is_written_in_a_language_comes_first() {
    let guard = guard(
        r#"
        [channels.hook.siri]
        token = "token-of-these-tests"
        [guard.templates]
        late = "everybody's"
        failed = "everybody's"
        [guard.templates.de]
        late = "German"
        silent = "German"
        [guard.templates.hook]
        late = "the hooks'"
        [guard.templates.hook.de]
        silent = "the hooks', in German"
        [guard.templates."hook.siri"]
        late = "Siri's"
        [guard.templates."hook.siri".de]
        late = "Siri's, in German"
        "#,
    );
    let text = |channel, tag, name| guard.templates.text(channel, language(tag), name);

    assert_eq!(text("hook.siri", "de", "late"), Some("Siri's, in German"));
    assert_eq!(text("hook.siri", "es", "late"), Some("Siri's"));
    assert_eq!(text("hook.other", "de", "late"), Some("German"));
    assert_eq!(text("hook.other", "en", "late"), Some("the hooks'"));
    assert_eq!(text("hook.other", "de", "silent"), Some("the hooks', in German"));
    assert_eq!(text("page.main", "de", "late"), Some("German"));
    assert_eq!(text("page.main", "es", "late"), Some("everybody's"));
    assert_eq!(text("page.main", "de", "failed"), Some("everybody's"), "also where a built-in text is there");
    assert_eq!(text("hook.other", "en", "silent"), Some("I have nothing to say to that."), "the platform's own");
    assert_eq!(
        text("hook.other", "es", "silent"),
        Some("No tengo nada que añadir."),
        "a translation of the general one"
    );
}

/// Somebody who copies the manual changes nothing.
#[test]
fn a_text_that_is_written_as_it_is_built_in_is_translated() {
    let guard = guard(&BUILD.manual());

    assert_eq!(guard.templates.text("page.main", language("de"), "cancelled"), Some("Abgebrochen."));
    let question = guard.clarify.question("what_next", language("de")).expect("it is there");
    assert!(question.text.starts_with("Ich weiß"), "{}", question.text);
}

#[test]
fn a_template_of_the_operators_own_is_the_same_in_all_languages_unless_it_is_translated() {
    let guard = guard(
        r#"
        [guard.ladder.default.direct]
        silent = [{ say = "calm" }]
        error = [{ say = "upset" }]
        [guard.templates]
        calm = "All is well."
        upset = "Oh."
        [guard.templates.de]
        calm = "Alles gut."
        "#,
    );
    let text = |tag, name| guard.templates.text("page.main", language(tag), name);

    assert_eq!((text("de", "calm"), text("es", "calm")), (Some("Alles gut."), Some("All is well.")));
    assert_eq!((text("de", "upset"), text("en", "upset")), (Some("Oh."), Some("Oh.")));
}

#[test]
fn an_operator_can_add_a_language() {
    let mut toml = "[guard]\nlanguage = \"pt-BR\"\n[guard.templates.pt]\n".to_owned();
    for name in TEMPLATES.iter() {
        let _ = writeln!(toml, "{name} = \"{name} em português\"");
    }
    let guard = guard(&toml);

    assert_eq!(guard.language, language("pt"));
    assert!(guard.languages.contains(&language("pt")));
    assert_eq!(guard.templates.text("page.main", language("pt"), "late"), Some("late em português"));
    assert_eq!(guard.templates.text("hook.main", language("pt"), "silent"), Some("silent em português"));
}

#[test]
fn a_language_that_lacks_texts_is_refused_and_so_is_one_that_has_none() {
    let errors = Machine::with_toml(
        r#"[guard]
language = "fr"
[guard.templates.pt]
late = "Tarde."
laet = "Tarde."
[guard.templates.hook.nl]
late = "Te laat."
[guard.templates.en]
late = "Too late."
menu_help = """
two
lines"""
[guard.templates.de.page]
late = "Zu spät."
[guard.clarify.what_next.languages.sv]
question = "?"
choices = ["a", "b"]
[people.ada]
identities = ["page.main/42"]
language = "nl"
"#,
    )
    .errors();

    let missing = TEMPLATES.iter().filter(|name| **name != "late").map(|name| format!("`{name}`"));
    let missing = missing.collect::<Vec<_>>().join(", ").replace(", `menu_option_text`", " and `menu_option_text`");
    for expected in [
        "`guard.language` names the language `fr`, which has no texts: there are `de`, `en`, `es` and `pt`, and you can add fr \
         with [guard.templates.fr] (rejoinder.toml:2)",
        &format!("`guard.templates.pt` has no text for {missing}: a language needs all of them (rejoinder.toml:3)"),
        "`guard.templates.pt.laet` is unknown: did you mean `late`? (rejoinder.toml:5)",
        "`guard.templates.hook.nl` names the language `nl`, which has no texts:",
        "`guard.templates.en.menu_help` must be one line of at most 100 characters, for menus (rejoinder.toml:10)",
        "`guard.templates.de.page` must be text, not a table (rejoinder.toml:13)",
        "`guard.clarify.what_next.languages.sv` names the language `sv`, which has no texts:",
        "`people.ada.language` names the language `nl`, which has no texts:",
    ] {
        assert!(errors.contains(expected), "{expected}\n{errors}");
    }
}

#[test]
fn what_is_no_language_is_refused() {
    let errors = Machine::with_toml("[guard]\nlanguage = \"german\"").errors();

    assert!(errors.contains("`guard.language` must be a language such as \"de\", not \"german\""), "{errors}");
}

/// Nobody is asked in German what the operator does not ask any more.
#[test]
fn a_question_that_the_operator_changed_is_asked_as_it_is_unless_it_is_translated() {
    let changed = "[guard.clarify.what_next]\nchoices = [\"Tea\", \"Coffee\"]\n";
    let translated = "[guard.clarify.what_next.languages.de]\nchoices = [\"Tee\", \"Kaffee\"]\n";
    let choices = |toml: &str, tag| {
        let question = guard(toml).clarify.question("what_next", language(tag)).expect("it is there");
        question.choices.join(" ")
    };

    assert_eq!(choices(changed, "de"), "Tea Coffee");
    assert_eq!(choices(&format!("{changed}{translated}"), "de"), "Tee Kaffee");
    assert_eq!(choices(&format!("{changed}{translated}"), "es"), "Tea Coffee");
    assert_eq!(choices(translated, "en"), "Tell me more Try again Never mind");
}
