//! The findings of `rejoinder doctor`.

use serde::Serialize;

use super::output::{self, printable};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Ok,
    /// May be intended, but the operator should know.
    Warning,
    Wrong,
}

impl Verdict {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Wrong => "wrong",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) verdict: Verdict,
    /// `config`, `data`, `database`, `gateway`, `nodes`, an agent (`agents.main`), a server for speech
    /// (`voice.speech`) or a channel (`webhook.siri`).
    pub(crate) about: String,
    pub(crate) what: String,
    /// What to do about it: one or more sentences.
    pub(crate) advice: Option<String>,
    /// Whether `--fix` has fixed it. Then it is [`Verdict::Ok`].
    pub(crate) fixed: bool,
}

impl Finding {
    fn new(verdict: Verdict, about: impl Into<String>, what: impl AsRef<str>) -> Self {
        Self { verdict, about: about.into(), what: one_line(what.as_ref()), advice: None, fixed: false }
    }

    pub(crate) fn ok(about: impl Into<String>, what: impl AsRef<str>) -> Self {
        Self::new(Verdict::Ok, about, what)
    }

    pub(crate) fn warning(about: impl Into<String>, what: impl AsRef<str>) -> Self {
        Self::new(Verdict::Warning, about, what)
    }

    pub(crate) fn wrong(about: impl Into<String>, what: impl AsRef<str>) -> Self {
        Self::new(Verdict::Wrong, about, what)
    }

    /// Adds what to do: one or more sentences.
    pub(crate) fn with_advice(mut self, advice: impl AsRef<str>) -> Self {
        self.advice = Some(one_line(advice.as_ref()));
        self
    }

    /// Adds further sentences to what to do.
    pub(crate) fn with_more_advice(self, more: impl AsRef<str>) -> Self {
        let more = more.as_ref();
        let advice = self.advice.as_ref().map_or_else(|| more.to_owned(), |advice| sentences(advice, more));
        self.with_advice(advice)
    }

    /// The finding after it was fixed. `done` says how: a sentence.
    pub(crate) fn into_fixed(self, done: impl AsRef<str>) -> Self {
        let what = one_line(&sentences(&self.what, done.as_ref()));
        Self { verdict: Verdict::Ok, what, advice: None, fixed: true, ..self }
    }

    pub(crate) fn line(&self) -> String {
        let Self { verdict, about, what, advice, fixed } = self;
        let verdict = if *fixed { "fixed" } else { verdict.as_str() };
        let text = advice.as_ref().map_or_else(|| what.clone(), |advice| sentences(what, advice));
        format!("{verdict:<8} {about:<17} {text}")
    }
}

/// Joins sentences; the first may lack its full stop.
fn sentences(first: &str, second: &str) -> String {
    let stop = if first.ends_with('.') { "" } else { "." };
    format!("{first}{stop} {second}")
}

/// A finding is one line: replaces line breaks and control characters, which texts of servers may contain.
fn one_line(text: &str) -> String {
    printable(&output::one_line(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line_whatever_others_say() {
        let finding = Finding::wrong("webhook.siri", "it said:\n  \u{1b}[2Jno").with_advice("Ask\nagain.");

        assert_eq!(finding.line(), "wrong    webhook.siri      it said: \u{fffd}[2Jno. Ask again.");
        assert_eq!(
            Finding::ok("config", "well.").with_advice("Go on.").line(),
            "ok       config            well. Go on."
        );
    }

    #[test]
    fn a_fixed_finding_is_no_failure_and_says_what_was_done() {
        let finding = Finding::wrong("data", "others write to it").with_advice("Run chmod.");
        let finding = finding.into_fixed("It is closed.");

        assert_eq!((finding.verdict, finding.advice.as_ref()), (Verdict::Ok, None));
        assert_eq!(finding.line(), "fixed    data              others write to it. It is closed.");
    }
}
