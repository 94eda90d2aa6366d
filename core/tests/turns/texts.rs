//! The texts of the tests' gateway: short, and each different from all others.

use rejoinder_core::{Language, Question, Templates};

pub(crate) const DEFERRAL: &str = "Still working on this.";
pub(crate) const SILENT: &str = "I have nothing to say to that.";
pub(crate) const FAILED: &str = "Sorry, I could not finish that.";
pub(crate) const CUT_OFF: &str = "The rest of this answer could not be sent.";
pub(crate) const REPLACES: &str = "This replaces what may stand above.";
pub(crate) const IN_FILE: &str = "The whole answer is in this file.";
pub(crate) const CUT_LONG: &str = "The answer is longer than fits here.";
pub(crate) const LATE: &str = "Sorry, that took too long.";

/// Some texts in German.
fn german() -> Templates {
    let german = Language::of("de").expect("it is a language");
    let templates = [
        ("deferral", "Ich bin dran."),
        ("silent", "Nichts."),
        ("late", "Zu spät."),
        ("cancelled", "Angehalten."),
        ("status_promised", "Versprochen seit {time}: {text}"),
        ("help", "Sag, was du willst."),
        ("pairing", "Frag nach {code}."),
        ("paired", "Komm herein, sagt {agent}."),
        ("person_asks", "{name} fragt."),
        ("elsewhere", "Von {channel}: {text}"),
        ("resent", "Vielleicht kennst du das schon."),
        ("language_changed", "Deutsch."),
        ("menu_help", "Was ich kann"),
        ("menu_option_choice", "Was du wählst"),
    ];
    let question = Question {
        text: "Was davon?".to_owned(),
        choices: vec!["mehr".to_owned(), "noch mal".to_owned()],
        anyone: false,
    };
    templates
        .into_iter()
        .fold(Templates::default(), |all, (name, text)| all.with_template_in(german, "", name, text))
        .with_question_in(german, "what_next", question)
}

/// What is told about sessions.
const OF_SESSIONS: [(&str, &str); 30] = [
    ("session_left", "Back: {number} {session}."),
    ("sessions", "Sessions:"),
    ("session_line", "{number} {session} {time} {by}"),
    ("session_current", "{number} {session} {time} {by} now"),
    ("session_more", "{count} more."),
    ("session_empty", "empty"),
    ("session_used", "Again {session}."),
    ("session_renamed", "It is {session}."),
    ("session_deleted", "Gone: {number} {session}."),
    ("sessions_deleted", "All gone."),
    ("session_unknown", "No such session."),
    ("session_elsewhere", "{session} is used elsewhere."),
    ("session_open", "{session} is open."),
    ("session_name_wrong", "No name."),
    ("session_name_taken", "The name is taken."),
    ("session_guest", "Not for guests."),
    ("session_usage", "list, new, use, rename, delete"),
    ("agent", "{agent} of {names}."),
    ("agent_fixed", "Only {agent}."),
    ("agent_chosen", "Now {name}."),
    ("agent_unknown", "Only {names}."),
    ("model", "{model} of {names}."),
    ("model_fixed", "Only one model."),
    ("model_chosen", "Model {name}."),
    ("model_unknown", "Only {names}."),
    ("retry_running", "Still on: {text}"),
    ("retry_nothing", "Nothing to try again."),
    ("retry_sealed", "Sealed: ask again."),
    ("undone", "Forgotten: {text}"),
    ("undo_nothing", "Nothing to forget."),
];

/// What is said of what is open.
const OF_DIGESTS: [(&str, &str); 18] = [
    ("digest", "Open: {count}"),
    ("digest_more", "{count} more."),
    ("digest_nothing", "Nothing is open."),
    ("digest_late", "late"),
    ("digest_deferred", "promised"),
    ("digest_open", "owed"),
    ("digest_asked", "asked"),
    ("digest_failed", "failed"),
    ("digest_approval", "waits for you"),
    ("digest_about", "What about {letter}, “{text}”?"),
    ("digest_answer", "Answer"),
    ("digest_snooze", "Snooze"),
    ("digest_drop", "Drop"),
    ("digest_tried", "{letter} is being answered now."),
    ("digest_waits", "{letter} is being answered already."),
    ("digest_snoozed", "I leave {letter} out for a day."),
    ("digest_dropped", "{letter} is dropped."),
    ("digest_over", "{letter} is done already."),
];

/// What the person is told of a turn that is given up.
pub(crate) const GIVEN_UP: &str = "No answer comes.";

/// What is told about approvals.
const OF_APPROVALS: [(&str, &str); 26] = [
    ("status_question", "Your answer for {time}: {text}"),
    ("status_approval", "Approval for {time}: {text}"),
    ("given_up", GIVEN_UP),
    ("approval_waits", "Waits for a yes: {action}"),
    ("approval_asks", "{agent} wants {action} for {name} ({channel}): {text}"),
    ("approval_mcp", "A tool of {server}:"),
    ("approval_acp", "A permission."),
    ("approval_own", "It says:"),
    ("approval_cut", "{count} are missing."),
    ("approval_shortened", "Some may be missing."),
    ("approval_whole", "All of {id}."),
    ("approval_approve", "Do it"),
    ("approval_decline", "Do not"),
    ("approval_approve_as", "Do it: {option}"),
    ("approval_decline_as", "Do not: {option}"),
    ("approval_for_ever", "always {option}"),
    ("approval_no_choice", "No choice."),
    ("approval_approved", "Yes to {action}."),
    ("approval_declined", "No to {action}."),
    ("approval_was_approved", "{name} said yes to {action}."),
    ("approval_was_declined", "{name} said no to {action}."),
    ("approval_over", "That is over."),
    ("approval_dropped", "No need: {action}."),
    ("question_answered", "Noted: {answer}."),
    ("question_over", "Too late."),
    ("approval_not_yours", "Not yours."),
];

/// What is said of late messages.
const OF_LATE: [(&str, &str); 6] = [
    ("late_messages", "Too old."),
    ("late_asks", "Answer the old ones?"),
    ("late_choice_answer", "Answer"),
    ("late_choice_leave", "Leave"),
    ("late_answered", "Answering."),
    ("late_left", "Left."),
];

const OF_PEOPLE: [(&str, &str); 12] = [
    ("home", "Home is {channel}."),
    ("home_away", "Not yet on {channel}."),
    ("home_last", "Where you wrote last."),
    ("home_here", "Here."),
    ("home_off", "Nowhere."),
    ("home_direct", "Not in a group."),
    ("home_unknown", "Who are you?"),
    ("menu_home", "Your home"),
    ("language", "English, or one of {languages}."),
    ("language_changed", "English."),
    ("language_auto", "As you like."),
    ("language_unknown", "Only {languages}."),
];

#[expect(clippy::too_many_lines, reason = "a flat list of texts")]
pub(crate) fn templates() -> Templates {
    [
        ("deferral", DEFERRAL),
        ("silent", SILENT),
        ("failed", FAILED),
        ("cut_off", CUT_OFF),
        ("in_file", IN_FILE),
        ("cut_long", CUT_LONG),
        ("late", LATE),
        ("file_not_sent", "{name} is not sent."),
        ("file_link", "{name} is at {url}."),
        ("unheard", "I heard nothing."),
        ("cancelled", "Stopped."),
        ("cancelled_by", "Stopped by {name}."),
        ("stop_own", "Only your own."),
        ("nothing_to_cancel", "There is nothing to stop."),
        ("new_session", "A new start."),
        ("stranger", "I do not know you, {sender}."),
        ("pairing", "Ask for {code}."),
        ("paired", "Come in, says {agent}."),
        ("approved", "{name} is in."),
        ("declined", "{name} stays out."),
        ("code_unknown", "Which code?"),
        ("code_locked", "Later."),
        ("owners_only", "You are no owner."),
        ("elsewhere", "From {channel}: {text}"),
        ("pairing_full", "Too many wait."),
        ("people_turned_away", "Too many on {channel}."),
        ("person_asks", "{name} ({identity}) asks, with {code}."),
        ("person_let_in", "Yes"),
        ("person_keep_out", "No"),
        ("person_decided", "Too late."),
        ("link_code", "Write /link {code}."),
        ("link_unknown", "Not known."),
        ("link_waits", "Asked."),
        ("link_asks", "{name} ({identity}) has your code."),
        ("link_yes", "It is me"),
        ("link_no", "It is not me"),
        ("link_confirmed", "There you are {name}."),
        ("link_declined", "Nobody is linked."),
        ("link_over", "Over."),
        ("linked", "You are {name}."),
        ("link_same", "{name} already."),
        ("link_wrong", "No such link."),
        ("link_refused", "Ask an operator."),
        ("link_direct", "Not in public."),
        ("unlinked", "No more {name}."),
        ("unlink_only", "Nothing to undo."),
        ("limited", "Not so fast."),
        ("limited_soon", "Nearly used, for {time}."),
        ("limited_today", "Enough for today, for {time}."),
        ("dropped", "{count} dropped: {text}"),
        ("queue", "Now {mode}."),
        ("queue_chosen", "From now on {mode}."),
        ("queue_unknown", "Still {mode}."),
        ("voice", "Spoken now: {mode}."),
        ("voice_chosen", "Spoken from now on: {mode}."),
        ("voice_unknown", "Spoken still: {mode}."),
        ("voice_unavailable", "Nobody speaks."),
        ("unspoken", "Not spoken."),
        ("question_expired", "Nobody answered: {question}"),
        ("start", "Hello! I am {agent}."),
        ("help", "Say what you like."),
        ("help_command", "/{name}: {description}"),
        ("status_turns_today", "{count} of {most} turns."),
        ("status_tokens_today", "{count} tokens."),
        ("status_tokens_limited", "{count} of {most} tokens."),
        ("status_cost_limited", "{count} of {most}."),
        ("budget", "Used up."),
        ("budget_nothing", "Nothing used."),
        ("budget_agent", "{name}: {percent} %."),
        ("budget_until", "Until {time}."),
        ("status_idle", "Nothing is going on."),
        ("status_running", "Running for {time}: {text}"),
        ("status_waiting", "Waiting for {time}: {text}"),
        ("status_promised", "Promised for {time}, within {due}: {text}"),
        ("status_sending", "Sending for {time}: {text}"),
        ("status_more", "{count} more."),
        ("history_empty", "Nothing was said."),
        ("history_notice", "Notice"),
        ("export_ready", "This was said."),
        ("export_cut", "(There was more.)"),
        ("export_unavailable", "No files here."),
        ("whoami", "You are {identity}."),
        ("whoami_member", "You are {name}, {identity}."),
        ("whoami_owner", "You are the owner {name}, {identity}."),
        ("whoami_unnamed", "You could be anyone."),
        ("resent", "Perhaps you have seen this already."),
        ("overtaken", "This is about something earlier."),
        ("replaces", REPLACES),
        ("menu_start", "Say hello"),
        ("menu_help", "What I can do"),
        ("menu_new", "Begin again"),
        ("menu_stop", "Stop it"),
        ("menu_status", "What is going on"),
        ("menu_history", "What was said"),
        ("menu_export", "The same, as a file"),
        ("menu_whoami", "Who you are"),
        ("menu_link", "One person"),
        ("menu_language", "My language"),
        ("menu_option_format", "Which format"),
        ("menu_option_choice", "What you choose"),
    ]
    .into_iter()
    .chain(OF_SESSIONS)
    .chain(OF_APPROVALS)
    .chain(OF_DIGESTS)
    .chain(OF_LATE)
    .chain(OF_PEOPLE)
    .fold(german(), |templates, (name, text)| templates.with_template("", name, text))
    .with_question(
        "what_next",
        Question {
            text: "Which of these?".to_owned(),
            choices: vec!["more".to_owned(), "again".to_owned()],
            anyone: false,
        },
    )
    .with_question(
        "for_all",
        Question {
            text: "Which of these, all?".to_owned(),
            choices: vec!["more".to_owned(), "again".to_owned()],
            anyone: true,
        },
    )
}
