//! Collects what a run leaves behind for the operator, within bounds and without secrets.

use std::{fmt::Write as _, sync::Arc};

use serde_json::{Value, value::RawValue};

use super::{estimate::Estimate, result::RunResult};
use crate::model::{AgentName, Masker, ModelInput, RunContent, ToolUse, Usage};

/// How large the arguments and the result of a tool call may be, in bytes.
const MOST_TEXT: usize = 4 << 10;

const MOST_CALLS: usize = 64;

/// How large the messages may be, and the settings, in bytes.
const MOST_JSON: usize = 64 << 10;

/// Collects what a run reports about itself.
pub(super) struct Recorder<'a> {
    masker: &'a Masker,
    pub(super) usage: Option<Usage>,
    pub(super) estimate: Estimate,
    /// The members that were asked, each with what was consumed before.
    members: Vec<(AgentName, Usage)>,
    content: RunContent,
}

/// What a run consumed with one member, or without any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) member: Option<AgentName>,
    pub(super) usage: Usage,
    /// Whether the runtime did not say it.
    pub(super) is_estimated: bool,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(masker: &'a Masker, estimate: Estimate) -> Self {
        Self { masker, usage: None, estimate, members: Vec::new(), content: RunContent::default() }
    }

    /// Another member is asked from now on.
    pub(super) fn asks(&mut self, member: AgentName) {
        self.members.push((member, self.usage.unwrap_or_default()));
    }

    /// What each member consumed, in order; all of it without one if there is none. If the last one did not say it, that is
    /// estimated by how the run ended.
    pub(super) fn shares(&self, result: &RunResult) -> Vec<Share> {
        let total = self.usage.unwrap_or_default();
        let share = |member, usage| Share { member, usage, is_estimated: false };
        let mut shares = if self.members.is_empty() {
            vec![share(None, total)]
        } else {
            let ends = self.members.iter().skip(1).map(|(_, before)| *before).chain([total]);
            let members = self.members.iter().zip(ends);
            members.map(|((member, before), end)| share(Some(member.clone()), end.since(*before))).collect()
        };
        if let Some(last) = shares.last_mut().filter(|last| last.usage == Usage::default()) {
            (last.usage, last.is_estimated) = (self.estimate.at(result), true);
        }
        shares
    }

    /// Keeps what the model is shown, in place of what it was shown before.
    pub(super) fn shown(&mut self, input: ModelInput) {
        self.content.input = Some(input);
    }

    pub(super) fn tool(&mut self, call: ToolUse) {
        if self.content.tools.len() == MOST_CALLS {
            self.content.tools_left_out = self.content.tools_left_out.saturating_add(1);
            return;
        }
        // Masked first: a secret that is cut would not be found.
        let bounded = |text| cut(self.masker.text(text), MOST_TEXT);
        let ToolUse { name, arguments, result } = call;
        let call = ToolUse { name: bounded(name), arguments: bounded(arguments), result: bounded(result) };
        self.content.tools.push(call);
    }

    /// The content to store.
    pub(super) fn content(self) -> Option<Arc<RunContent>> {
        let Self { masker, mut content, .. } = self;
        content.input = content.input.map(|input| bounded(masker, input));
        (!content.is_empty()).then(|| Arc::new(content))
    }
}

fn bounded(masker: &Masker, input: ModelInput) -> ModelInput {
    let (messages, left_out) = latest_messages(masker.json(input.messages));
    let settings = masker.json(input.settings);
    let settings = if settings.len() > MOST_JSON { shortened(&settings) } else { settings };
    ModelInput { settings, messages, left_out: input.left_out.saturating_add(left_out) }
}

/// The messages without the oldest ones, if all of them are too large; and how many are missing. The last one always
/// stays, if need be in part.
fn latest_messages(messages: String) -> (String, u32) {
    if messages.len() <= MOST_JSON {
        return (messages, 0);
    }
    let Ok(all) = serde_json::from_str::<Vec<&RawValue>>(&messages) else { return (shortened(&messages), 0) };
    let mut size = "[]".len();
    let fitting = all.iter().rev().take_while(|message| {
        size += message.get().len() + ",".len();
        size <= MOST_JSON
    });
    let left_out = all.len() - fitting.count();
    let kept = match &all[left_out..] {
        [] => all.last().map(|last| shortened(last.get())).unwrap_or_default(),
        kept => kept.iter().map(|message| message.get()).collect::<Vec<_>>().join(","),
    };
    let left_out = left_out.min(all.len().saturating_sub(1));
    (format!("[{kept}]"), u32::try_from(left_out).unwrap_or(u32::MAX))
}

/// The JSON with its long texts cut until it is small enough. If it is no JSON, or too large for another reason, its
/// beginning as a text.
fn shortened(json: &str) -> String {
    if let Ok(whole) = serde_json::from_str::<Value>(json) {
        let mut most = MOST_JSON / 2;
        while most >= MOST_TEXT / 4 {
            let mut value = whole.clone();
            cut_texts(&mut value, most);
            let small = value.to_string();
            if small.len() <= MOST_JSON {
                return small;
            }
            most /= 2;
        }
    }
    // Escaped, it may be larger than it was, but not by much.
    Value::from(cut(json.to_owned(), MOST_JSON / 2)).to_string()
}

fn cut_texts(value: &mut Value, most: usize) {
    match value {
        Value::String(text) => *text = cut(std::mem::take(text), most),
        Value::Array(values) => values.iter_mut().for_each(|value| cut_texts(value, most)),
        Value::Object(fields) => fields.values_mut().for_each(|value| cut_texts(value, most)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The beginning of a text that is too long, with a mark.
pub(super) fn cut(mut text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let whole = text.len();
    text.truncate(text.floor_char_boundary(most));
    let _ = write!(text, "… [cut: {whole} bytes in all]");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(arguments: &str, result: &str) -> ToolUse {
        ToolUse { name: "search".to_owned(), arguments: arguments.to_owned(), result: result.to_owned() }
    }

    fn input(messages: &[String]) -> ModelInput {
        ModelInput { settings: "{}".to_owned(), messages: Value::from(messages).to_string(), left_out: 0 }
    }

    fn recorded(masker: &Masker, record: impl FnOnce(&mut Recorder<'_>)) -> RunContent {
        let mut recorder = Recorder::new(masker, Estimate::default());
        record(&mut recorder);
        Arc::unwrap_or_clone(recorder.content().expect("there is a content"))
    }

    #[test]
    fn nothing_reported_is_nothing_to_store() {
        let masker = Masker::default();
        let mut recorder = Recorder::new(&masker, Estimate::default());
        recorder.usage = Some(Usage { input_tokens: 1, output_tokens: 2 });

        assert_eq!(recorder.content(), None);
    }

    #[test]
    fn what_is_consumed_counts_for_the_member_that_is_asked() {
        let masker = Masker::default();
        let mut recorder = Recorder::new(&masker, Estimate::default());
        let usage = |tokens| Usage { input_tokens: tokens, output_tokens: 1 };
        recorder.usage = Some(usage(1));
        let share = |member: Option<&str>, usage, is_estimated| Share {
            member: member.map(AgentName::from),
            usage,
            is_estimated,
        };
        assert_eq!(recorder.shares(&RunResult::Stopped), [share(None, usage(1), false)]);

        let mut recorder = Recorder::new(&masker, Estimate::default());
        recorder.asks("one".into());
        recorder.usage = Some(usage(5));
        recorder.asks("two".into());
        recorder.asks("three".into());
        recorder.usage = Some(usage(7));

        let two = Usage { input_tokens: 2, output_tokens: 0 };
        let shares = [share(Some("one"), usage(5), false), share(Some("two"), Usage::default(), false)];
        let [one, none] = &shares;
        assert_eq!(
            recorder.shares(&RunResult::Stopped),
            [one, none, &share(Some("three"), two, false)].map(Clone::clone)
        );
        recorder.asks("four".into());
        recorder.estimate.streams("five bytes");
        let estimated = Usage { input_tokens: 0, output_tokens: 3 };
        assert_eq!(recorder.shares(&RunResult::Stopped).pop(), Some(share(Some("four"), estimated, true)));
    }

    #[test]
    fn long_arguments_and_results_are_cut_between_characters() {
        // The limit lies within the last character.
        let long = format!("{}éé", "x".repeat(MOST_TEXT - 1));

        let content = recorded(&Masker::default(), |run| run.tool(call(&long, "fine")));

        let expected = format!("{}… [cut: 4099 bytes in all]", "x".repeat(MOST_TEXT - 1));
        assert_eq!(content.tools, [call(&expected, "fine")]);
    }

    #[test]
    fn a_secret_is_masked_before_its_text_is_cut() {
        let masker = Masker::new(["sk-12345678"]);
        let long = format!("{}sk-12345678", "x".repeat(MOST_TEXT - 5));

        let content = recorded(&masker, |run| {
            run.tool(call(&long, "sk-12345678"));
            run.shown(ModelInput {
                settings: r#"{"key":"sk-12345678"}"#.to_owned(),
                messages: r#"["my key is sk-12345678"]"#.to_owned(),
                left_out: 0,
            });
        });

        assert_eq!(content.tools[0].result, "••••");
        assert!(!format!("{content:?}").contains("sk-"), "{content:?}");
        let input = content.input.expect("it was shown something");
        assert_eq!((&*input.settings, &*input.messages), (r#"{"key":"••••"}"#, r#"["my key is ••••"]"#));
    }

    #[test]
    fn only_so_many_calls_are_kept() {
        let content = recorded(&Masker::default(), |run| (0..70).for_each(|_| run.tool(call("{}", "ok"))));

        assert_eq!((content.tools.len(), content.tools_left_out), (64, 6));
    }

    #[test]
    fn the_last_input_counts() {
        let content = recorded(&Masker::default(), |run| {
            run.shown(input(&["one".to_owned()]));
            run.shown(input(&["one".to_owned(), "two".to_owned()]));
        });

        assert_eq!(content.input.expect("it was shown something").messages, r#"["one","two"]"#);
    }

    #[test]
    fn the_oldest_messages_are_left_out_first() {
        let messages = [40_000, 20_000, 20_000, 20_000].map(|size| "x".repeat(size));

        let content = recorded(&Masker::default(), |run| run.shown(input(&messages)));

        let input = content.input.expect("it was shown something");
        assert_eq!((input.messages, input.left_out), (Value::from(&messages[1..]).to_string(), 1));
    }

    #[test]
    fn a_last_message_that_is_too_large_stays_in_part() {
        let messages = ["short".to_owned(), "\"".repeat(100_000)];

        let content = recorded(&Masker::default(), |run| run.shown(input(&messages)));

        let input = content.input.expect("it was shown something");
        assert!(input.messages.len() <= MOST_JSON + 2 && input.left_out == 1, "{}", input.messages.len());
        let kept: Vec<String> = serde_json::from_str(&input.messages).expect("JSON");
        assert!(
            kept[0].starts_with("\"\"\"") && kept[0].ends_with("… [cut: 100000 bytes in all]"),
            "{}",
            kept[0].len()
        );
    }

    #[test]
    fn what_is_no_json_is_kept_as_a_text() {
        let broken = ModelInput { messages: "[".repeat(100_000), ..ModelInput::default() };

        let content = recorded(&Masker::default(), |run| run.shown(broken));

        let messages = content.input.expect("it was shown something").messages;
        let text: String = serde_json::from_str(&messages).expect("JSON");
        assert!(text.ends_with("… [cut: 100000 bytes in all]") && text.len() < MOST_JSON);
    }
}
