//! The findings of `rejoinder doctor`.

use serde::Serialize;

use super::output::printable;

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

/// One result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) verdict: Verdict,
    /// `config`, `data`, `database`, `gateway`, an agent (`agents.main`) or a channel (`webhook.siri`).
    pub(crate) about: String,
    pub(crate) what: String,
    /// What to do about it: one or more sentences.
    pub(crate) advice: Option<String>,
}

impl Finding {
    fn new(verdict: Verdict, about: impl Into<String>, what: impl AsRef<str>) -> Self {
        Self { verdict, about: about.into(), what: one_line(what.as_ref()), advice: None }
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

    pub(crate) fn line(&self) -> String {
        let Self { verdict, about, what, advice } = self;
        let (stop, advice) = match advice {
            Some(advice) if what.ends_with('.') => (" ", advice.as_str()),
            Some(advice) => (". ", advice.as_str()),
            None => ("", ""),
        };
        format!("{:<8} {about:<17} {what}{stop}{advice}", verdict.as_str())
    }
}

/// A finding is one line: replaces line breaks and control characters, which texts of servers may contain.
fn one_line(text: &str) -> String {
    printable(&text.split_whitespace().collect::<Vec<_>>().join(" "))
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
}
