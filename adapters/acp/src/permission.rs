//! What is answered when the agent asks for permission. No I/O.

use rejoinder_agents::asking::{Decisions, allows};
use rejoinder_core::{AgentApproval, ApprovalRequest, ApprovalState};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    options::Offer,
    protocol::{PermissionOption, ToolCall},
    tools::{described, written},
};

/// How many characters of an action are told before its digest. The core keeps 300 of both.
const MAX_ACTION: usize = 250;

/// The answer to a request for permission.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// This option. `None`: the request is cancelled.
    Choose(Option<String>),
    /// Somebody must decide first.
    Ask(ApprovalRequest),
}

/// Decides about the requests of a run.
pub(crate) struct Permissions {
    decisions: Decisions,
    may_ask: bool,
    /// The action that was refused last, unless it is known that the agent has said something since.
    refused: Option<String>,
    /// Whether anything was refused in the present prompt.
    has_refused: bool,
}

impl Permissions {
    pub(crate) fn new(approvals: &[AgentApproval], may_ask: bool) -> Self {
        Self { decisions: Decisions::of(approvals), may_ask, refused: None, has_refused: false }
    }

    pub(crate) fn decide(&mut self, call: &ToolCall, options: &[PermissionOption]) -> Decision {
        let action = action(call);
        for offer in Offer::all(options) {
            if let Some(decision) = self.decisions.take(&request(&action, call, &offer)) {
                return Decision::Choose(self.chosen(&action, &offer, &decision));
            }
        }
        let offer = Offer::of(options);
        let request = request(&action, call, &offer);
        if self.may_ask && !self.decisions.declines(&request) {
            return Decision::Ask(request);
        }
        Decision::Choose(self.rejected(&action, &offer))
    }

    /// The option for what was decided while the run waited. A no holds for the rest of the run.
    pub(crate) fn decided(&mut self, decision: AgentApproval, options: &[PermissionOption]) -> Option<String> {
        let action = decision.request.action.clone();
        let option = self.chosen(&action, &Offer::of(options), &decision);
        if !allows(&decision) {
            self.decisions.add(decision);
        }
        option
    }

    /// The option for a request about which nobody was asked.
    pub(crate) fn refuse(&mut self, request: &ApprovalRequest, options: &[PermissionOption]) -> Option<String> {
        self.rejected(&request.action, &Offer::of(options))
    }

    fn chosen(&mut self, action: &str, offer: &Offer<'_>, decision: &AgentApproval) -> Option<String> {
        if !allows(decision) {
            self.note_refused(action);
        }
        offer.chosen(decision)
    }

    fn rejected(&mut self, action: &str, offer: &Offer<'_>) -> Option<String> {
        self.note_refused(action);
        offer.rejected()
    }

    fn note_refused(&mut self, action: &str) {
        (self.refused, self.has_refused) = (Some(action.to_owned()), true);
    }

    /// Another prompt begins.
    pub(crate) const fn begin_prompt(&mut self) {
        self.has_refused = false;
    }

    /// Whether anything was refused in the present prompt.
    pub(crate) const fn has_refused(&self) -> bool {
        self.has_refused
    }

    /// The action that was refused last, if this was not called since: it is when the agent has said something.
    pub(crate) fn take_refused(&mut self) -> Option<String> {
        self.refused.take()
    }

    /// Notes what was decided of a request that the agent took back meanwhile: a no holds all the same.
    pub(crate) fn note(&mut self, decision: Option<AgentApproval>) {
        if let Some(decision) =
            decision.filter(|decision| !allows(decision) && decision.state != ApprovalState::Dropped)
        {
            self.decisions.add(decision);
        }
    }
}

/// The name of an action, by which a decision is found again: the kind of the call, its title, and a digest of what neither says. So
/// another content of the same file is another action.
fn action(call: &ToolCall) -> String {
    let title = described(call);
    let content = content(call);
    let is_all = content.is_none() && call.raw_input.as_ref().is_none_or(|input| is_title(input, &title));
    let said = match call.kind.as_deref() {
        Some(kind) if kind != "other" && kind != title => format!("{kind}: {title}"),
        _ => title,
    };
    // The core keeps one line.
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_short = line.chars().count() <= MAX_ACTION;
    if is_short && is_all && line == said {
        return line;
    }
    let whole = json!([said, call.raw_input, content]).to_string();
    let digest = hex::encode(&Sha256::digest(whole)[..16]);
    let cut = if is_short { "" } else { "…" };
    format!("{}{cut} ({digest})", line.chars().take(MAX_ACTION).collect::<String>())
}

/// Whether an input is a single text, which is the title.
fn is_title(input: &Value, title: &str) -> bool {
    match input {
        Value::String(text) => text == title,
        Value::Object(parts) if parts.len() == 1 && parts.values().all(|part| part == title) => true,
        other => written(other) == title,
    }
}

/// What the agent says of a call beside its input, such as the change of a file. Of a terminal it says only an id, which is another one in
/// each run (Codex): a decision would not be found again.
fn content(call: &ToolCall) -> Option<Value> {
    let parts: Vec<_> = call.content.iter().flatten().filter(|part| part["type"] != "terminal").collect();
    (!parts.is_empty()).then(|| json!(parts))
}

/// What approvers read. What the gateway says of the options comes before what the agent says of the call: lines of the agent that look
/// like it come after it.
fn request(action: &str, call: &ToolCall, offer: &Offer<'_>) -> ApprovalRequest {
    let parts = call.raw_input.iter().map(written).chain(content(call).map(|content| content.to_string()));
    let details = parts.collect::<Vec<_>>().join("\n");
    let told = offer.told();
    let details = if details.is_empty() { told } else { format!("{told}\n\n{details}") };
    let kind = call.kind.as_deref().filter(|kind| kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
    let kind = Some(format!("acp.{}", kind.unwrap_or("other")));
    ApprovalRequest { details: Some(details), kind, options: offer.own(), ..ApprovalRequest::action(action) }
}

#[cfg(test)]
mod tests {
    use rejoinder_core::{ApprovalOption, conformance::runtime::decision};
    use rstest::rstest;

    use super::*;

    fn call(title: &str) -> ToolCall {
        let call = json!({ "toolCallId": "1", "title": title, "kind": "execute", "rawInput": { "command": title } });
        serde_json::from_value(call).expect("a tool call")
    }

    fn options(kinds: &[&str]) -> Vec<PermissionOption> {
        kinds
            .iter()
            .map(|kind| {
                let name = Some((*kind).to_owned());
                PermissionOption { option_id: format!("id-{kind}"), name, kind: (*kind).to_owned() }
            })
            .collect()
    }

    fn approval(call: &ToolCall, state: ApprovalState) -> AgentApproval {
        approval_of(call, &options(&ALL), state)
    }

    fn approval_of(call: &ToolCall, options: &[PermissionOption], state: ApprovalState) -> AgentApproval {
        decision(&request(&action(call), call, &Offer::of(options)), state)
    }

    /// Gemini lists `allow_always` first.
    const ALL: [&str; 4] = ["allow_always", "allow_once", "reject_always", "reject_once"];

    /// The names of options that are no plain yes and no plain no, without what has a meaning in Markdown.
    const EVER: &str = "for ever: allowalways";
    const NEVER: &str = "for ever: rejectalways";

    /// In the middle of a run, and in one after a crash. It allows one call, whatever the agent takes it for.
    #[rstest]
    #[case::ever(ApprovalState::Approved, EVER, "id-allow_always")]
    #[case::never(ApprovalState::Declined, NEVER, "id-reject_always")]
    #[case::no_such_option(ApprovalState::Approved, "gone", "id-allow_once")]
    #[case::another_answer(ApprovalState::Declined, EVER, "id-reject_once")]
    fn a_decision_chooses_the_option_that_it_names(
        #[case] state: ApprovalState,
        #[case] chosen: &str,
        #[case] option: &str,
    ) {
        let call = call("rm a");
        let decision = AgentApproval { chosen: Some(chosen.to_owned()), ..approval(&call, state) };
        let mut again = Permissions::new(std::slice::from_ref(&decision), true);
        let mut same = Permissions::new(&[], true);

        assert_eq!(same.decided(decision, &options(&ALL)).as_deref(), Some(option));
        let [first, next] = [&mut again, &mut same].map(|run| run.decide(&call, &options(&ALL)));

        let is_same = |decision: &Decision| *decision == Decision::Choose(Some(option.to_owned()));
        assert!(is_same(&first), "{first:?}");
        let is_no = state == ApprovalState::Declined;
        assert!(if is_no { is_same(&next) } else { matches!(next, Decision::Ask(_)) }, "{next:?}");
    }

    #[rstest]
    #[case::approved(Some(ApprovalState::Approved), &ALL, Some("id-allow_once"))]
    #[case::declined(Some(ApprovalState::Declined), &ALL, Some("id-reject_once"))]
    #[case::expired(Some(ApprovalState::Expired), &ALL, Some("id-reject_once"))]
    #[case::nobody_to_ask(None, &ALL, Some("id-reject_once"))]
    #[case::only_always(Some(ApprovalState::Approved), &["allow_always", "reject_always"], None)]
    #[case::no_options(None, &[], None)]
    fn an_option_is_chosen_by_its_kind(
        #[case] state: Option<ApprovalState>,
        #[case] kinds: &[&str],
        #[case] chosen: Option<&str>,
    ) {
        let (call, options) = (call("rm a"), options(kinds));
        let approvals: Vec<_> = state.into_iter().map(|state| approval_of(&call, &options, state)).collect();
        let mut permissions = Permissions::new(&approvals, false);

        let decision = permissions.decide(&call, &options);

        assert_eq!(decision, Decision::Choose(chosen.map(str::to_owned)));
    }

    #[rstest]
    #[case::approved(ApprovalState::Approved, "id-allow_once", None)]
    #[case::declined(ApprovalState::Declined, "id-reject_once", Some("id-reject_once"))]
    #[case::expired(ApprovalState::Expired, "id-reject_once", Some("id-reject_once"))]
    #[case::dropped(ApprovalState::Dropped, "id-reject_once", Some("id-reject_once"))]
    fn a_decision_in_the_middle_of_a_run_allows_one_call_or_none(
        #[case] state: ApprovalState,
        #[case] chosen: &str,
        #[case] next: Option<&str>,
    ) {
        let mut permissions = Permissions::new(&[], true);

        assert_eq!(permissions.decided(approval(&call("rm a"), state), &options(&ALL)).as_deref(), Some(chosen));

        match (permissions.decide(&call("rm a"), &options(&ALL)), next) {
            (Decision::Choose(option), Some(next)) => assert_eq!(option.as_deref(), Some(next)),
            (Decision::Ask(_), None) => {}
            other => panic!("{other:?}"),
        }
        assert!(matches!(permissions.decide(&call("rm b"), &options(&ALL)), Decision::Ask(_)));
    }

    #[rstest]
    #[case::approved(ApprovalState::Approved, None)]
    #[case::declined(ApprovalState::Declined, Some("id-reject_once"))]
    #[case::dropped(ApprovalState::Dropped, None)]
    fn of_what_was_taken_back_only_a_no_holds(#[case] state: ApprovalState, #[case] next: Option<&str>) {
        let mut permissions = Permissions::new(&[], true);

        permissions.note(Some(approval(&call("rm a"), state)));

        let decision = permissions.decide(&call("rm a"), &options(&ALL));
        let option = if let Decision::Choose(option) = decision { option } else { None };
        assert_eq!(option.as_deref(), next);
    }

    #[test]
    fn an_approval_is_for_one_call_of_that_action() {
        let approvals = [approval(&call("rm a"), ApprovalState::Approved)];
        let mut permissions = Permissions::new(&approvals, true);

        let decisions = ["rm b", "rm a", "rm a"].map(|title| permissions.decide(&call(title), &options(&ALL)));

        let names = "If approved: “allow_once”\nIf declined: “reject_once”\n\
            Can be chosen as well: “allow_always” (allow_always), “reject_always” (reject_always)";
        let own = |name: &str, allows| ApprovalOption { name: name.to_owned(), allows };
        let asks = |title: &str| {
            Decision::Ask(ApprovalRequest {
                details: Some(format!("{names}\n\n{{\"command\":\"{title}\"}}")),
                kind: Some("acp.execute".to_owned()),
                options: vec![own(EVER, true), own(NEVER, false)],
                ..ApprovalRequest::action(format!("execute: {title}"))
            })
        };
        assert_eq!(decisions, [asks("rm b"), Decision::Choose(Some("id-allow_once".to_owned())), asks("rm a")]);
    }

    /// After a crash the agent may list its options in another order.
    #[rstest]
    #[case::yes(ApprovalState::Approved, "Here")]
    #[case::no(ApprovalState::Declined, "Stop")]
    fn the_options_of_a_decision_are_found_again_by_their_names(#[case] state: ApprovalState, #[case] chosen: &str) {
        let is_no = state == ApprovalState::Declined;
        let option = |(name, kind): (&str, &str)| PermissionOption {
            option_id: format!("id-{name}"),
            name: Some(name.to_owned()),
            kind: kind.to_owned(),
        };
        let first =
            [("Here", "allow_once"), ("Everywhere", "allow_once"), ("Stop", "reject_once"), ("Skip", "reject_once")];
        let [before, again] = [first, [first[3], first[1], first[2], first[0]]].map(|all| all.map(option));
        let other = [("Anywhere", "allow_once"), first[2]].map(option);
        let mut permissions = Permissions::new(&[approval_of(&call("rm a"), &before, state)], true);

        let found = Decision::Choose(Some(format!("id-{chosen}")));
        let of_other = permissions.decide(&call("rm a"), &other);
        assert!(matches!(of_other, Decision::Ask(_)) || is_no && of_other == found, "another option was approved");
        assert_eq!(permissions.decide(&call("rm a"), &again), found);
    }

    #[test]
    fn the_same_title_with_another_content_is_another_action() {
        let edit = |content: &str| -> ToolCall {
            let diff = json!([{ "type": "diff", "path": "a", "newText": content }]);
            let call = json!({ "toolCallId": "1", "title": "Edit a", "kind": "edit", "content": diff });
            serde_json::from_value(call).expect("a tool call")
        };
        let Decision::Ask(asked) = Permissions::new(&[], true).decide(&edit("one"), &options(&ALL)) else {
            panic!("nobody has decided yet");
        };
        assert!(asked.details.is_some_and(|details| details.contains("\"newText\":\"one\"")));
        let approvals = [approval(&edit("one"), ApprovalState::Approved)];
        let mut permissions = Permissions::new(&approvals, true);

        assert!(matches!(permissions.decide(&edit("two"), &options(&ALL)), Decision::Ask(_)));
        let allowed = Decision::Choose(Some("id-allow_once".to_owned()));
        assert_eq!(permissions.decide(&edit("one"), &options(&ALL)), allowed);
    }

    #[test]
    fn a_decision_holds_for_the_same_call_in_another_terminal() {
        let [first, second] = ["1", "2"].map(|id| {
            let content = json!([{ "type": "terminal", "terminalId": id }]);
            let call = json!({ "toolCallId": id, "title": "rm a", "kind": "execute", "content": content });
            serde_json::from_value::<ToolCall>(call).expect("a tool call")
        });
        let mut permissions = Permissions::new(&[approval(&first, ApprovalState::Approved)], true);

        let allowed = Decision::Choose(Some("id-allow_once".to_owned()));
        assert_eq!(permissions.decide(&second, &options(&ALL)), allowed);
    }

    #[test]
    fn an_input_that_the_title_only_mentions_makes_a_difference() {
        let call = |command: &str| -> ToolCall {
            let call = json!({ "toolCallId": "1", "title": "rm -rf /srv/a/tmp", "rawInput": { "command": command } });
            serde_json::from_value(call).expect("a tool call")
        };

        assert_eq!(action(&call("rm -rf /srv/a/tmp")), "rm -rf /srv/a/tmp");
        assert_ne!(action(&call("rm -rf /srv/a")), action(&call("rm -rf /srv/a/tmp")));
        assert_ne!(action(&call("rm -rf /srv/a")), action(&call("rm -rf /")));
    }

    #[rstest]
    #[case::input(json!({ "rawInput": { "path": "/srv/a" } }), r#"{"path":"/srv/a"}"#)]
    #[case::input_and_kind(json!({ "kind": "delete", "rawInput": { "path": "/srv/a" } }), r#"delete: {"path":"/srv/a"}"#)]
    #[case::kind(json!({ "kind": "delete" }), "delete")]
    #[case::other(json!({ "kind": "other", "rawInput": {}, "title": " " }), "a tool call that the agent does not describe")]
    #[case::nothing(json!({}), "a tool call that the agent does not describe")]
    fn a_call_that_is_not_known_is_described_by_its_request(#[case] mut named: Value, #[case] said: &str) {
        named["toolCallId"] = "1".into();
        let named: ToolCall = serde_json::from_value(named).expect("a tool call");

        let Decision::Ask(asked) = Permissions::new(&[], true).decide(&named, &options(&ALL)) else {
            panic!("nobody has decided yet");
        };

        assert!(asked.action.split(" (").next() == Some(said), "{}", asked.action);
    }

    #[test]
    fn a_long_input_of_a_call_without_a_title_is_bounded() {
        let call = |end: &str| -> ToolCall {
            let call = json!({ "toolCallId": "1", "rawInput": { "command": "x".repeat(10_000) + end } });
            serde_json::from_value(call).expect("a tool call")
        };

        assert!(action(&call("1")).chars().count() <= 300);
        assert_ne!(action(&call("1")), action(&call("2")));
    }

    /// The core keeps one line of it.
    #[test]
    fn an_action_is_one_line_and_lines_make_a_difference() {
        let [one, other] = ["rm a\nrm b", "rm a rm b"].map(|title| action(&call(title)));

        assert!(one.starts_with("execute: rm a rm b (") && other == "execute: rm a rm b", "{one}, {other}");
    }

    #[test]
    fn an_approval_of_an_earlier_run_allows_nothing_any_more() {
        let mut approvals = ["rm a", "rm b"].map(|it| approval(&call(it), ApprovalState::Approved));
        approvals[0].is_used = true;
        let mut permissions = Permissions::new(&approvals, true);

        assert!(matches!(permissions.decide(&call("rm a"), &options(&ALL)), Decision::Ask(_)));
        let allowed = Decision::Choose(Some("id-allow_once".to_owned()));
        assert_eq!(permissions.decide(&call("rm b"), &options(&ALL)), allowed);
    }

    /// The core stores an action on one line.
    #[test]
    fn an_approval_holds_for_lines_and_for_nothing_that_looks_like_them() {
        let approvals = [approval(&call("rm a\nb"), ApprovalState::Approved)];
        let mut permissions = Permissions::new(&approvals, true);

        assert!(matches!(permissions.decide(&call("rm a b"), &options(&ALL)), Decision::Ask(_)));
        let allowed = Decision::Choose(Some("id-allow_once".to_owned()));
        assert_eq!(permissions.decide(&call("rm a\nb"), &options(&ALL)), allowed);
    }

    #[test]
    fn long_actions_that_differ_at_their_end_differ() {
        let [one, other] = ["1", "2"].map(|end| action(&call(&("x".repeat(400) + end))));

        assert_ne!(one, other);
        assert!(one.chars().count() <= 300);
    }
}
