//! The options of a request for permission: which of them a decision chooses, and how approvers read them. No I/O.
//!
//! Options are chosen by their kind, never by their position: some agents list "always" first. A plain yes or no, and a rule, allow or
//! reject nothing "always", because that may also hold for other people's turns: an approver must choose that option itself.

use std::ptr;

use rejoinder_agents::asking::allows;
use rejoinder_core::{AgentApproval, ApprovalOption, FOR_EVER, excerpt, is_hidden, shown_option};
use sha2::{Digest, Sha256};

use crate::protocol::PermissionOption;

/// The kind that a plain yes chooses, and the kind that a plain no chooses.
const ALLOWS: &str = "allow_once";
const REJECTS: &str = "reject_once";

/// The kinds that an approver may choose, in the order in which they are offered, and whether each allows.
const KINDS: [(&str, bool); 4] = [(ALLOWS, true), ("allow_always", true), (REJECTS, false), ("reject_always", false)];

/// How many characters of a name are shown, how many options are offered beside the plain yes and the plain no, and how many names of
/// others are shown. All of them are in the first half of the details that the core shows.
const MOST_NAME: usize = 60;
const MOST_OFFERED: usize = 4;
const MOST_OTHERS: usize = 3;

/// How many options of one kind an earlier decision may be about.
const MOST_OF_KIND: usize = 4;

/// What an approver reads where no option is of the kind. The gateway's words here are English, whatever the approver speaks.
const CANCELS: &str = "none of the agent’s options fits, and its request is cancelled";

/// What stands for a name that is not there.
const NAMELESS: &str = "an option without a name";

/// The options of a request, and those of them that a plain yes and a plain no choose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer<'a> {
    options: &'a [PermissionOption],
    allows: Option<&'a PermissionOption>,
    rejects: Option<&'a PermissionOption>,
}

impl<'a> Offer<'a> {
    /// What approvers are asked: of several options of a kind about the one that the agent lists first.
    pub(crate) fn of(options: &'a [PermissionOption]) -> Self {
        let first = |kind: &str| options.iter().find(|option| option.kind == kind);
        Self { options, allows: first(ALLOWS), rejects: first(REJECTS) }
    }

    /// What approvers may have been asked in an earlier run, in which the agent may have listed its options in another order.
    pub(crate) fn all(options: &'a [PermissionOption]) -> Vec<Self> {
        let rejecting = of_kind(options, REJECTS);
        let mut all = Vec::new();
        for allows in of_kind(options, ALLOWS) {
            all.extend(rejecting.iter().map(|rejects| Self { options, allows, rejects: *rejects }));
        }
        all
    }

    /// The id of the option that a decision chooses: the one that it names, if the agent offers that, else the plain yes or no. `None`:
    /// there is none, and the request is cancelled.
    pub(crate) fn chosen(&self, decision: &AgentApproval) -> Option<String> {
        let allows = allows(decision);
        let is_chosen =
            |named: &ApprovalOption| named.allows == allows && Some(&named.name) == decision.chosen.as_ref();
        let own = self.offered().into_iter().find(|(named, _)| is_chosen(named)).map(|(_, option)| option);
        own.or(if allows { self.allows } else { self.rejects }).map(|option| option.option_id.clone())
    }

    /// The id of the option for a no that nobody said.
    pub(crate) fn rejected(&self) -> Option<String> {
        self.rejects.map(|option| option.option_id.clone())
    }

    /// What an approver may choose beside a plain yes and a plain no: the same in any order of the agent's.
    pub(crate) fn own(&self) -> Vec<ApprovalOption> {
        self.offered().into_iter().map(|(named, _)| named).collect()
    }

    /// The same with the agent's options. Of several with the same name and answer only the first is offered.
    fn offered(&self) -> Vec<(ApprovalOption, &'a PermissionOption)> {
        let rank = |option: &PermissionOption| KINDS.iter().position(|(kind, _)| option.kind == *kind);
        let mut others: Vec<_> = self.others().filter_map(|option| Some((rank(option)?, option))).collect();
        others.sort_by_key(|&(rank, option)| (rank, option.name.as_deref()));
        let mut offered: Vec<(ApprovalOption, &PermissionOption)> = Vec::new();
        for (rank, option) in others {
            let Some(name) = offered_name(option) else { continue };
            let named = ApprovalOption { name, allows: KINDS[rank].1 };
            let is_new = offered.iter().all(|(known, _)| *known != named);
            if is_new && offered.len() < MOST_OFFERED {
                offered.push((named, option));
            }
        }
        offered
    }

    /// Which options a decision chooses, in lines that depend on no order.
    pub(crate) fn told(&self) -> String {
        let chosen = |option: Option<&PermissionOption>| option.map_or_else(|| CANCELS.to_owned(), named);
        let mut lines =
            vec![format!("If approved: {}", chosen(self.allows)), format!("If declined: {}", chosen(self.rejects))];
        let offered: Vec<_> = self.offered().into_iter().map(|(_, option)| option).collect();
        if !offered.is_empty() {
            let names: Vec<_> = offered.iter().map(|option| format!("{} ({})", named(option), option.kind)).collect();
            lines.push(format!("Can be chosen as well: {}", names.join(", ")));
        }
        let others = self.left_out(&offered);
        if !others.is_empty() {
            lines.push(format!("Not chosen: {}", others.join(", ")));
        }
        lines.join("\n")
    }

    /// The options that neither a plain yes nor a plain no chooses.
    fn others(&self) -> impl Iterator<Item = &'a PermissionOption> {
        let plain = [self.allows, self.rejects];
        self.options.iter().filter(move |option| !plain.into_iter().flatten().any(|it| ptr::eq(it, *option)))
    }

    /// The names of the options that no decision chooses.
    fn left_out(&self, offered: &[&PermissionOption]) -> Vec<String> {
        let is_offered = |option: &PermissionOption| offered.iter().any(|it| ptr::eq(*it, option));
        let mut others: Vec<_> = self.others().filter(|option| !is_offered(option)).map(named).collect();
        others.sort_unstable();
        let more = others.len().saturating_sub(MOST_OTHERS);
        others.truncate(MOST_OTHERS);
        if more > 0 {
            others.push(format!("{more} more"));
        }
        others
    }
}

/// The options of a kind, as the choices of an offer.
fn of_kind<'a>(options: &'a [PermissionOption], kind: &str) -> Vec<Option<&'a PermissionOption>> {
    let of_kind = options.iter().filter(|option| option.kind == kind).take(MOST_OF_KIND);
    let mut found: Vec<_> = of_kind.map(Some).collect();
    if found.is_empty() {
        found.push(None);
    }
    found
}

/// The name under which an option is offered. `None`: it has none, it says untruly that it holds for ever, or it does and an approver
/// could not read the whole of it.
fn offered_name(option: &PermissionOption) -> Option<String> {
    let name = option.name.as_deref().unwrap_or_default();
    let shown = shown_option(name);
    if shown.is_empty() {
        return None;
    }
    if !option.kind.ends_with("_always") {
        // It says that it holds for ever, and does not.
        return (!shown.starts_with(FOR_EVER)).then_some(shown);
    }
    let whole = format!("{FOR_EVER}{name}");
    // What is left out of a name to show it only makes it shorter.
    (whole.chars().count() <= MOST_NAME).then(|| shown_option(&whole))
}

/// The name of an option, in one line of bounded length. Where this changes the name, a digest of it follows: a decision about one option
/// is none about another.
fn named(option: &PermissionOption) -> String {
    let name = option.name.as_deref().unwrap_or_default();
    // It ends where its quotation marks do.
    let shown = |c: char| match c {
        '“' | '”' => '\'',
        c if c.is_control() => ' ',
        c => c,
    };
    let seen: String = name.chars().filter(|c| !is_hidden(*c)).map(shown).collect();
    let line = excerpt(&seen, MOST_NAME);
    let shown = if line.is_empty() { NAMELESS.to_owned() } else { format!("“{line}”") };
    if line == name {
        return shown;
    }
    let digest = hex::encode(&Sha256::digest(name)[..8]);
    format!("{shown} ({digest})")
}

#[cfg(test)]
mod tests {
    use rejoinder_core::{ApprovalRequest, ApprovalState, conformance::runtime};
    use rstest::rstest;

    use super::*;

    fn option(name: &str, kind: &str) -> PermissionOption {
        PermissionOption { option_id: format!("{name}/{kind}"), name: Some(name.to_owned()), kind: kind.to_owned() }
    }

    fn options(named: &[(&str, &str)]) -> Vec<PermissionOption> {
        named.iter().map(|(name, kind)| option(name, kind)).collect()
    }

    const ALWAYS: (&str, &str) = ("Yes, and don't ask again for npm commands", "allow_always");
    const ONCE: (&str, &str) = ("Yes", ALLOWS);
    const NO: (&str, &str) = ("No", REJECTS);

    #[rstest]
    #[case::all(
        &[ALWAYS, ONCE, NO],
        "If approved: “Yes”\nIf declined: “No”\nCan be chosen as well: “Yes, and don't ask again for npm commands” (allow_always)"
    )]
    #[case::only_once(&[NO, ONCE], "If approved: “Yes”\nIf declined: “No”")]
    #[case::two_of_a_kind(
        &[ONCE, ("Later", ALLOWS), NO],
        "If approved: “Yes”\nIf declined: “No”\nCan be chosen as well: “Later” (allow_once)"
    )]
    #[case::unknown_kind(&[ONCE, NO, ("Maybe", "ask")], "If approved: “Yes”\nIf declined: “No”\nNot chosen: “Maybe”")]
    #[case::without_a_name(&[("", ALLOWS), NO], "If approved: an option without a name\nIf declined: “No”")]
    fn approvers_read_what_a_decision_chooses(#[case] named: &[(&str, &str)], #[case] told: &str) {
        assert_eq!(Offer::of(&options(named)).told(), told);
    }

    #[test]
    fn approvers_read_that_a_yes_allows_nothing() {
        let options = options(&[ALWAYS, NO]);
        let offer = Offer::of(&options);

        assert!(offer.told().starts_with(&format!("If approved: {CANCELS}\nIf declined: “No”\n")), "{}", offer.told());
        let [yes, no] = [ApprovalState::Approved, ApprovalState::Declined].map(|state| decision(state, None));
        assert_eq!((offer.chosen(&yes), offer.chosen(&no)), (None, Some("No/reject_once".to_owned())));
        let ever = decision(ApprovalState::Approved, Some("for ever: Yes, and don't ask again for npm commands"));
        assert_eq!(offer.chosen(&ever), Some(format!("{}/allow_always", ALWAYS.0)), "an approver chose it");
    }

    fn decision(state: ApprovalState, chosen: Option<&str>) -> AgentApproval {
        let chosen = chosen.map(str::to_owned);
        AgentApproval { chosen, ..runtime::decision(&ApprovalRequest::action("rm a"), state) }
    }

    /// The least of the agent's rights come first.
    #[test]
    fn what_can_be_chosen_is_the_same_in_any_order() {
        let more = ("No, never", "reject_always");
        let all =
            [ALWAYS, more, ONCE, ("Later", ALLOWS), NO, ("Yes", "allow_always"), ("Yes", "allow_always"), ("", "ask")];
        let mut other_order = all;
        other_order.sort_unstable_by_key(|(name, kind)| (*name != ONCE.0 || *kind != ALLOWS, kind.len()));

        let [one, other] = [all, other_order].map(|named| Offer::of(&options(&named)).own());

        let named = |name: &str, allows| ApprovalOption { name: name.to_owned(), allows };
        let always = "for ever: Yes, and don't ask again for npm commands";
        assert_eq!(
            one,
            [
                named("Later", true),
                named("for ever: Yes", true),
                named(always, true),
                named("for ever: No, never", false)
            ]
        );
        assert_eq!(one, other);
    }

    #[test]
    fn another_order_of_the_others_is_told_in_the_same_words() {
        let more = ("No, never", "reject_always");

        let [one, other] =
            [[ALWAYS, more, ONCE, NO], [NO, ONCE, more, ALWAYS]].map(|named| Offer::of(&options(&named)).told());

        assert_eq!(one, other);
    }

    #[rstest]
    #[case::hidden("Ye\u{202e}s\u{200b}", "“Yes” (")]
    #[case::lines("Yes\nIf declined: “Yes”\u{2028}x", "“Yes If declined: 'Yes' x” (")]
    #[case::control("Yes\u{1b}[2K", "“Yes [2K” (")]
    #[case::block("Yes```", "“Yes'''” (")]
    #[case::quotes("Yes” (allow_once), “No", "“Yes' (allow_once), 'No” (")]
    fn a_name_is_one_line_of_what_can_be_seen(#[case] name: &str, #[case] shown: &str) {
        let line = named(&option(name, ALLOWS));

        assert!(line.starts_with(shown) && !line.contains('\n'), "{line}");
        assert_ne!(line, named(&option(&format!("{name}\u{200b}"), ALLOWS)));
    }

    /// An approver must be able to read all that they allow for ever. The longest name that is offered is not cut by the core.
    #[test]
    fn what_holds_for_ever_is_offered_only_by_its_whole_name() {
        let [longest, longer] = [50, 51].map(|length| "x".repeat(length));
        let more = [(longest.as_str(), "allow_always"), (longer.as_str(), "allow_always"), (longer.as_str(), ALLOWS)];
        let options = options(&[ONCE, NO, more[0], more[1], more[2]]);
        let offer = Offer::of(&options);

        let own: Vec<_> = offer.own().into_iter().map(|option| option.name).collect();

        assert_eq!(own, [longer.clone(), format!("for ever: {longest}")]);
        assert!(offer.told().ends_with(&format!("\nNot chosen: “{longer}”")), "{}", offer.told());
    }

    #[test]
    fn what_holds_once_is_not_offered_as_if_it_held_for_ever() {
        let options = options(&[ONCE, NO, ("for ever: all of it", ALLOWS)]);

        assert_eq!(Offer::of(&options).own().into_iter().map(|option| option.name).collect::<Vec<_>>(), [""; 0]);
    }

    /// Of long details the core shows the first 1,000 characters and the end.
    #[test]
    fn names_are_bounded_and_differ_where_they_are_cut() {
        let long = |end: usize| {
            option(&format!("{}{end}", "x".repeat(10_000)), if end == 0 { ALLOWS } else { "allow_always" })
        };
        let options: Vec<_> = (0..100).map(long).collect();

        let told = Offer::of(&options).told();

        assert!(told.chars().count() < 1_000 && told.ends_with(", 96 more"), "{told}");
        let distinct = |option: &PermissionOption| PermissionOption {
            option_id: option.option_id.clone(),
            name: option.name.as_ref().map(|name| name.chars().rev().collect()),
            kind: ALLOWS.to_owned(),
        };
        let options_of_other_names: Vec<_> = options.iter().map(distinct).collect();
        let told_of_others = Offer::of(&options_of_other_names).told();
        assert!(told_of_others.chars().count() < 1_000 && told_of_others.ends_with(", 92 more"), "{told_of_others}");
        assert_ne!(named(&options[0]), named(&options[1]));
    }
}
