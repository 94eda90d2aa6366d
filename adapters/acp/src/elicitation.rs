//! What an agent asks the person for with `elicitation/create`: one question after the other, and the answer to the agent. No I/O.
//!
//! What the person writes is a value, and nothing else: only the words that a question names mean something else.

mod field;
#[cfg(test)]
mod tests;
mod words;

use rejoinder_core::{ApprovalRequest, Choices, PersonAnswer, as_stored, is_hidden};
use serde_json::{Map, Value, json};
use url::Url;

use self::{
    field::{Field, read::Said},
    words::{DECLINE, DONE, LAST_TRY, OK},
};
use crate::protocol::{ElicitationRequest, FormSchema, MOST_PROPERTIES};

/// How often a property is asked for until an answer fits.
const MOST_TRIES: usize = 3;

/// How many characters a question may have: the core keeps as many.
const MOST_TEXT: usize = 2_000;

/// How many characters a link may have.
const MOST_LINK: usize = 1_500;

/// The answer to the agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Response {
    /// With the values of a form, by their names.
    Accept(Option<Map<String, Value>>),
    /// The person does not want to, or it is not shown to them.
    Decline,
    /// There is no answer.
    Cancel,
}

impl Response {
    pub(crate) fn result(&self) -> Value {
        match self {
            Self::Accept(Some(content)) => json!({ "action": "accept", "content": content }),
            Self::Accept(None) => json!({ "action": "accept" }),
            Self::Decline => json!({ "action": "decline" }),
            Self::Cancel => json!({ "action": "cancel" }),
        }
    }
}

/// What to do next about a request.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// Ask the person.
    Ask(String, Choices),
    Answer(Response),
}

/// A request of an agent, as far as it is answered.
#[derive(Debug)]
pub(crate) struct Elicitation {
    message: String,
    link: Option<Url>,
    fields: Vec<Field>,
    /// The values of the fields before `at`.
    content: Map<String, Value>,
    at: usize,
    /// What was wrong about the last answer, and how many were wrong.
    wrong: Option<(String, usize)>,
    end: Option<Response>,
}

impl Elicitation {
    /// The error says why it is not shown to the person, without the agent's words.
    pub(crate) fn of(request: ElicitationRequest) -> Result<Self, &'static str> {
        let (message, link, fields) = match request {
            ElicitationRequest::Form { message, requested_schema, .. } => (message, None, fields(requested_schema)?),
            ElicitationRequest::Url { message, url, .. } => (message, Some(link(&url)?), Vec::new()),
            ElicitationRequest::Other => return Err("its mode is not known"),
        };
        let (content, message) = (Map::new(), message.trim().to_owned());
        Ok(Self { message, link, fields, content, at: 0, wrong: None, end: None })
    }

    pub(crate) fn step(&self) -> Step {
        if let Some(end) = &self.end {
            return Step::Answer(end.clone());
        }
        match self.fields.get(self.at) {
            Some(field) => Step::Ask(self.text(&field.text((self.at + 1, self.fields.len()))), field.choices()),
            None if self.fields.is_empty() => {
                let link = self.link.as_ref().map(|link| format!("<{link}>")).unwrap_or_default();
                let options = [self.consent(), DECLINE].map(str::to_owned).to_vec();
                Step::Ask(self.text(&link), Choices { options, free_text: false, expires: None })
            }
            None => Step::Answer(Response::Accept(Some(self.content.clone()))),
        }
    }

    /// Takes the answer to the question of the last [step](Self::step). `None`: there was none in time, or nobody was asked.
    pub(crate) fn take(&mut self, words: Option<&str>) {
        let Some(words) = words.map(str::trim) else {
            self.end = Some(Response::Cancel);
            return;
        };
        let Some(field) = self.fields.get(self.at) else {
            self.end = Some(match words {
                DECLINE => Response::Decline,
                words if words == self.consent() => Response::Accept(self.link.is_none().then(Map::new)),
                _ => Response::Cancel,
            });
            return;
        };
        match field.read(words) {
            Ok(Said::Decline) => self.end = Some(Response::Decline),
            Ok(said) => {
                if let Said::Value(value) = said {
                    self.content.insert(field.name.clone(), value);
                }
                self.at += 1;
                self.wrong = None;
            }
            Err(wrong) => {
                let tries = self.wrong.as_ref().map_or(0, |(_, tries)| *tries) + 1;
                self.wrong = Some((wrong, tries));
                if tries == MOST_TRIES {
                    self.end = Some(Response::Cancel);
                }
            }
        }
    }

    /// The choice that agrees where there is nothing to write.
    fn consent(&self) -> &'static str {
        if self.link.is_some() { DONE } else { OK }
    }

    /// A question. What was wrong makes another question of it: an earlier answer is none to it.
    fn text(&self, asked: &str) -> String {
        let wrong = self
            .wrong
            .as_ref()
            .map(|(wrong, tries)| if tries + 1 == MOST_TRIES { format!("{wrong} {LAST_TRY}") } else { wrong.clone() });
        let used: usize = wrong.iter().map(String::as_str).chain([asked]).map(|part| part.chars().count() + 2).sum();
        // With every field: the answer to a field of another form is none to it.
        let message = clipped(&self.message, MOST_TEXT.saturating_sub(used));
        let parts = [wrong.as_deref().unwrap_or_default(), &message, asked];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
    }
}

/// The beginning of a text, of at most `most` characters in all. It keeps its lines.
fn clipped(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// What is asked for. The error says why it cannot be.
fn fields(schema: FormSchema) -> Result<Vec<Field>, &'static str> {
    let FormSchema { properties, required } = schema;
    let required = required.unwrap_or_default();
    if properties.len() > MOST_PROPERTIES {
        return Err("it asks for too much at once");
    }
    let fields = properties.into_iter().map(|(name, property)| {
        let is_required = required.contains(&name);
        Field::of(name, property, is_required)
    });
    fields.filter_map(Result::transpose).collect()
}

/// A link that can be shown as it is. It is never opened here.
fn link(url: &str) -> Result<Url, &'static str> {
    if url.chars().any(|c| c.is_control() || c.is_whitespace() || is_hidden(c)) {
        return Err("its link has characters that are not seen");
    }
    let link = Url::parse(url).map_err(|_| "its link is none")?;
    let is_web = matches!(link.scheme(), "https" | "http") && link.has_host();
    match link.as_str().len() {
        _ if !is_web => Err("its link is none of the web"),
        _ if !link.username().is_empty() || link.password().is_some() => Err("its link has a name before its host"),
        length if length > MOST_LINK => Err("its link is too long to be shown"),
        _ => Ok(link),
    }
}

/// What the person has said in earlier runs of the turn.
#[derive(Debug)]
pub(crate) struct Answers(Vec<(PersonAnswer, bool)>);

impl Answers {
    pub(crate) fn of(answers: &[PersonAnswer]) -> Self {
        Self(answers.iter().map(|answer| (answer.clone(), false)).collect())
    }

    /// The answer to a question that was asked before. Of several the first that is not taken yet, else the last one: an answer is no
    /// permission.
    pub(crate) fn take(&mut self, question: &ApprovalRequest) -> Option<&PersonAnswer> {
        let question = as_stored(question);
        let mut known = self.0.iter_mut().filter(|(answer, _)| answer.question == question).peekable();
        loop {
            let (answer, is_taken) = known.next()?;
            if !*is_taken || known.peek().is_none() {
                *is_taken = true;
                return Some(answer);
            }
        }
    }
}
