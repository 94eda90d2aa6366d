//! Collects what a run leaves behind for the operator, within bounds and without secrets.

use std::{fmt::Write as _, sync::Arc};

use serde_json::{Value, value::RawValue};
use tokio::sync::oneshot;
use tracing::warn;

use super::{estimate::Estimate, result::RunResult};
use crate::{
    model::{AgentName, Cost, Masker, ModelInput, RunContent, ToolUse, Usage, title},
    ports::{AgentError, MemberReport},
};

/// How large the arguments and the result of a tool call may be, in bytes.
const MOST_TEXT: usize = 4 << 10;

const MOST_CALLS: usize = 64;

/// How large the messages may be, and the settings, in bytes.
const MOST_JSON: usize = 64 << 10;

/// Collects what a run reports about itself.
pub(super) struct Recorder<'a> {
    masker: &'a Masker,
    pub(super) usage: Option<Usage>,
    /// What the run has cost without members, if the agent says it, and the tokens whose cost is not in it.
    cost: Option<(Cost, Usage)>,
    pub(super) estimate: Estimate,
    /// What the session is about.
    pub(super) title: Option<String>,
    /// Tells the runtime that the end of its run is stored.
    pub(super) awaits_end: Option<oneshot::Sender<bool>>,
    /// The members that were asked, in order.
    members: Vec<Member>,
    content: RunContent,
}

/// A member that was asked.
struct Member {
    name: AgentName,
    /// What the run had consumed before.
    before: Usage,
    /// What it consumed, by its texts. Known once the next one is asked.
    estimated: Usage,
    is_unreached: bool,
    /// What it has cost, if it says it, and the tokens whose cost is not in it.
    cost: Option<(Cost, Usage)>,
}

impl Member {
    /// The estimate, which is nothing if it was not reached.
    fn estimate(&self, estimated: Usage) -> Usage {
        if self.is_unreached { Usage::default() } else { estimated }
    }
}

/// What a run consumed with one member, or without any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) member: Option<AgentName>,
    pub(super) usage: Usage,
    /// Whether the runtime did not say it.
    pub(super) is_estimated: bool,
    /// What the runtime says that it cost.
    pub(super) cost: Option<Cost>,
}

/// What was reported, and what an estimate is more than that. `is_whole`: what was reported, if anything was, is all. A cost that was
/// reported is all in any case: the estimate adds tokens to it and no money. The tokens whose cost is not in it are a share of their own.
fn shares(
    member: Option<&AgentName>,
    (reported, cost): (Usage, Option<(Cost, Usage)>),
    estimated: Usage,
    is_whole: bool,
) -> impl Iterator<Item = Share> {
    let more = if is_whole && reported != Usage::default() { Usage::default() } else { estimated.since(reported) };
    let (cost, unpriced) = cost.unzip();
    let priced = reported.since(unpriced.unwrap_or_default());
    let unpriced = reported.since(priced);
    let share = |usage, is_estimated, cost| Share { member: member.cloned(), usage, is_estimated, cost };
    let unpriced = (unpriced != Usage::default()).then(|| share(unpriced, false, None));
    let no_more = cost.map(|cost| Cost { micros: 0, ..cost });
    let more = (more != Usage::default()).then(|| share(more, true, no_more));
    [share(priced, false, cost)].into_iter().chain(unpriced).chain(more)
}

impl<'a> Recorder<'a> {
    pub(super) fn new(masker: &'a Masker, estimate: Estimate) -> Self {
        let (usage, cost, title, awaits_end) = (None, None, None, None);
        Self { masker, usage, cost, estimate, title, awaits_end, members: Vec::new(), content: RunContent::default() }
    }

    /// A text without the operator's secrets.
    pub(super) fn masked(&self, text: String) -> String {
        self.masker.text(text)
    }

    /// Another member is asked from now on, or the last one has ended. Returns the health of the one that has.
    pub(super) fn asks(&mut self, report: MemberReport) -> Option<(AgentName, Result<(), String>)> {
        let name = match report {
            MemberReport::Asked(name) => name,
            MemberReport::Answered => return Some((self.members.last()?.name.clone(), Ok(()))),
            MemberReport::Failed(error) => {
                let last = self.members.last_mut()?;
                last.is_unreached = matches!(error, AgentError::Unreachable(_));
                return Some((last.name.clone(), Err(error.summary())));
            }
        };
        if let Some(last) = self.members.last_mut() {
            last.estimated = self.estimate.so_far();
            self.estimate = self.estimate.renewed();
        }
        let before = self.usage.unwrap_or_default();
        self.members.push(Member { name, before, estimated: Usage::default(), is_unreached: false, cost: None });
        None
    }

    /// Whether a member has failed: it may have acted, and what it used is paid.
    pub(super) fn has_asked_several(&self) -> bool {
        self.members.len() > 1
    }

    /// Keeps the latest cost: that of the member that is asked, or of the run without one.
    pub(super) fn costs(&mut self, cost: Cost, unpriced: Usage) {
        if cost.micros > Cost::MOST_REPORTED {
            warn!("the cost that an agent reports is too large, and is not used");
            return;
        }
        let of_member = self.members.last_mut().map(|member| &mut member.cost);
        *of_member.unwrap_or(&mut self.cost) = Some((cost, unpriced));
    }

    /// What the run consumed, and the shares of it. Of a run with which somebody goes on (`is_left`), only what members consumed that failed.
    pub(super) fn used(&self, result: &RunResult, is_left: bool) -> (Option<Usage>, Vec<Share>) {
        let mut shares = self.shares(result);
        if !is_left {
            return (self.usage, shares);
        }
        let last = shares.last().and_then(|share| share.member.clone());
        shares.retain(|share| share.member != last);
        (None, shares)
    }

    /// What each member consumed, in order; all of it without one if there is none. Of a member that did not say it, that is
    /// estimated. The last report of a run that was not ended by an outcome may be too early: what the estimate is more counts, too.
    pub(super) fn shares(&self, result: &RunResult) -> Vec<Share> {
        let total = self.usage.unwrap_or_default();
        let is_whole = matches!(result, RunResult::Returned(Ok(_)));
        let last = self.estimate.at(result);
        let Some((asked, failed)) = self.members.split_last() else {
            return shares(None, (total, self.cost), last, is_whole).collect();
        };
        let ends = self.members.iter().skip(1).map(|next| next.before);
        let failed = failed.iter().zip(ends).flat_map(|(member, end)| {
            let reported = (end.since(member.before), member.cost);
            shares(Some(&member.name), reported, member.estimate(member.estimated), true)
        });
        let reported = (total.since(asked.before), asked.cost);
        let asked = shares(Some(&asked.name), reported, asked.estimate(last), is_whole);
        failed.chain(asked).collect()
    }

    /// Keeps what the model is shown, in place of what it was shown before.
    pub(super) fn shown(&mut self, input: ModelInput) {
        self.content.input = Some(input);
    }

    /// Keeps the latest title in which something can be seen.
    pub(super) fn titles(&mut self, text: &str) {
        if let Some(title) = title(&self.masked(text.to_owned())) {
            self.title = Some(title);
        }
    }

    pub(super) fn tool(&mut self, call: ToolUse) {
        if self.content.tools.len() == MOST_CALLS {
            self.content.tools_left_out = self.content.tools_left_out.saturating_add(1);
            return;
        }
        // Masked first: a secret that is cut would not be found.
        let bounded = |text| cut(self.masker.text(text), MOST_TEXT);
        let ToolUse { name, arguments, result, duration_ms } = call;
        let (name, arguments, result) = (bounded(name), bounded(arguments), bounded(result));
        let call = ToolUse { name, arguments, result, duration_ms };
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
    use rejoinder_guard::Outcome;

    use super::*;
    use crate::model::{AgentMessage, Sender, SenderKind};

    fn call(arguments: &str, result: &str) -> ToolUse {
        let (arguments, result) = (arguments.to_owned(), result.to_owned());
        ToolUse { name: "search".to_owned(), arguments, result, duration_ms: None }
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

    fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
        Usage { input_tokens, output_tokens }
    }

    fn share(member: Option<&str>, usage: Usage, is_estimated: bool) -> Share {
        Share { member: member.map(AgentName::from), usage, is_estimated, cost: None }
    }

    fn asked(name: &str) -> MemberReport {
        MemberReport::Asked(name.into())
    }

    #[test]
    fn what_is_consumed_counts_for_the_member_that_is_asked() {
        let masker = Masker::default();
        let mut recorder = Recorder::new(&masker, Estimate::default());
        recorder.usage = Some(usage(1, 1));
        assert_eq!(recorder.shares(&RunResult::Stopped), [share(None, usage(1, 1), false)]);

        let mut recorder = Recorder::new(&masker, Estimate::default());
        recorder.asks(asked("one"));
        recorder.usage = Some(usage(5, 1));
        recorder.asks(asked("two"));
        recorder.asks(asked("three"));
        recorder.usage = Some(usage(7, 1));

        let mut expected = vec![
            share(Some("one"), usage(5, 1), false),
            share(Some("two"), usage(0, 0), false),
            share(Some("three"), usage(2, 0), false),
        ];
        assert_eq!(recorder.shares(&RunResult::Stopped), expected);
        recorder.asks(asked("four"));
        recorder.estimate.streams("five bytes");
        expected.extend([share(Some("four"), usage(0, 0), false), share(Some("four"), usage(0, 3), true)]);
        assert_eq!(recorder.shares(&RunResult::Stopped), expected);
    }

    #[test]
    fn a_cost_is_that_of_the_member_that_is_asked_and_an_estimate_adds_no_money_to_it() {
        let cost = |amount| Cost::reported(amount, "USD").expect("a cost");
        let masker = Masker::default();
        let mut recorder = Recorder::new(&masker, Estimate::default());
        recorder.costs(cost(2.0), usage(0, 0));
        recorder.costs(cost(1.0), usage(0, 0));
        recorder.costs(Cost { micros: u64::MAX, ..cost(1.0) }, usage(0, 0));
        recorder.estimate.streams("five bytes");
        let (reported, estimated) = (share(None, usage(0, 0), false), share(None, usage(0, 3), true));
        let of_run = [Share { cost: Some(cost(1.0)), ..reported }, Share { cost: Some(cost(0.0)), ..estimated }];
        assert_eq!(recorder.shares(&RunResult::Stopped), of_run);

        let mut recorder = Recorder::new(&masker, Estimate::default());
        recorder.asks(asked("one"));
        recorder.costs(cost(3.0), usage(0, 0));
        recorder.asks(asked("two"));
        let members = [
            Share { cost: Some(cost(3.0)), ..share(Some("one"), usage(0, 0), false) },
            share(Some("two"), usage(0, 0), false),
        ];
        assert_eq!(recorder.shares(&RunResult::Stopped), members);
    }

    #[test]
    fn tokens_that_are_not_in_the_cost_are_a_share_of_their_own() {
        let cost = Cost::reported(1.0, "USD").expect("a cost");
        let masker = Masker::default();
        let mut recorder = Recorder::new(&masker, Estimate::default());
        recorder.usage = Some(usage(10, 4));

        recorder.costs(cost, usage(4, 1));

        let priced = Share { cost: Some(cost), ..share(None, usage(6, 3), false) };
        assert_eq!(recorder.shares(&RunResult::Stopped), [priced, share(None, usage(4, 1), false)]);
    }

    #[test]
    fn a_run_without_an_outcome_has_used_what_it_said_at_least() {
        let masker = Masker::default();
        let mut recorder = Recorder::new(&masker, Estimate::default());
        recorder.usage = Some(usage(900, 1));
        recorder.estimate.streams(&"x".repeat(400));

        let reported = share(None, usage(900, 1), false);
        let ends = [
            RunResult::Stopped,
            RunResult::Panicked(String::new()),
            RunResult::Returned(Err(AgentError::Failed(String::new()))),
        ];
        for end in ends {
            assert_eq!(recorder.shares(&end), [reported.clone(), share(None, usage(0, 99), true)]);
        }
        let silent = RunResult::Returned(Ok(Outcome::Silent(String::new())));
        assert_eq!(recorder.shares(&silent), [reported]);
    }

    #[test]
    fn members_that_fail_without_a_report_are_estimated_unless_they_were_not_reached() {
        let masker = Masker::default();
        let mut estimate = Estimate::default();
        let sender = Sender { id: "ann".to_owned(), name: None, username: None, kind: SenderKind::Person };
        let text = "eight by".to_owned();
        estimate.hears(&[AgentMessage {
            sender,
            text,
            forwarded: None,
            attachments: Vec::new(),
            voice: None,
            quoted: None,
            reaction: None,
        }]);
        let mut recorder = Recorder::new(&masker, estimate);
        recorder.asks(asked("one"));
        recorder.estimate.streams("five bytes");
        recorder.asks(asked("two"));
        let health = recorder.asks(MemberReport::Failed(AgentError::Unreachable("no route".to_owned())));
        assert_eq!(health, Some(("two".into(), Err("the agent cannot be reached: no route".to_owned()))));
        recorder.asks(asked("three"));
        recorder.usage = Some(usage(4, 4));

        let outcome = RunResult::Returned(Ok(Outcome::Silent(String::new())));
        let expected = [
            share(Some("one"), usage(0, 0), false),
            share(Some("one"), usage(2, 3), true),
            share(Some("two"), usage(0, 0), false),
            share(Some("three"), usage(4, 4), false),
        ];
        assert_eq!(recorder.shares(&outcome), expected);
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
