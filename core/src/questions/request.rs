//! Requests for approvals, as they are stored.

use std::collections::HashSet;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use rejoinder_guard::{ApprovalOption, ApprovalRequest, Choices};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    base::words::{excerpt, plain},
    model::name::clean,
};

/// How many characters are kept of the action, the details and the kind of a request for an approval.
const MOST_ACTION: usize = 300;
const MOST_DETAILS: usize = 2000;
const MOST_KIND: usize = 64;

/// How many bytes are kept of the [whole] of a request.
const MOST_WHOLE: usize = 64 << 10;

/// How many characters are kept of a question to a person, how many choices, and how many characters of each.
const MOST_QUESTION: usize = 2000;
const MOST_CHOICES: usize = 8;
const MOST_CHOICE: usize = 64;

/// How many options of a request are kept, and how many characters of the name of each.
const MOST_OPTIONS: usize = 6;
const MOST_OPTION: usize = 60;

/// What stands before the name of an option that holds for ever, where it is stored. People in chats read it in their language.
pub const FOR_EVER: &str = "for ever: ";

/// What stands before and after the number of characters that are not shown.
const CUT: (&str, &str) = ("\n[… ", " characters are not shown …]\n");

/// The length of a digest: 16 bytes in Base64.
const DIGEST: usize = 22;

/// How many characters are kept of an action before the digest of its request.
const MOST_BEFORE_DIGEST: usize = 270;

/// A question to a person as it is stored and shown: all of bounded length. Where more than blanks is cut off, the details are a digest of
/// the whole question, so that the stored form of two questions is the same only if the questions are.
fn question_as_stored(request: &ApprovalRequest, choices: &Choices) -> ApprovalRequest {
    let mut seen = HashSet::new();
    let lines = choices.options.iter().map(|option| excerpt(option, usize::MAX));
    let options: Vec<_> = lines.filter(|option| !option.is_empty() && seen.insert(option.clone())).collect();
    // One choice is none, and without any the person needs words.
    let kept = if options.len() > 1 { &options[..options.len().min(MOST_CHOICES)] } else { &[] };
    let shown: Vec<_> = kept.iter().map(|option| excerpt(option, MOST_CHOICE)).collect();
    let text = request.action.trim();
    let cut = match text.char_indices().nth(MOST_QUESTION) {
        Some((end, _)) => format!("{}…", text[..end].trim_end_matches('…')),
        None => text.to_owned(),
    };
    let is_whole = cut == text && shown == options;
    let details = if is_whole { request.details.clone() } else { Some(digest_of(&json!([text, options]))) };
    let free_text = choices.free_text || shown.is_empty();
    ApprovalRequest { details, ..ApprovalRequest::question(cut, Choices { options: shown, free_text, expires: None }) }
}

fn digest_of(whole: &Value) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(&Sha256::digest(whole.to_string())[..16])
}

/// A request as it is stored and shown: the action on one line, and all of bounded length: details have their beginning and their end.
/// Where this changes the request, the action ends with a digest of the whole request, so that the stored form of two requests is the
/// same only if the requests are.
pub fn as_stored(request: &ApprovalRequest) -> ApprovalRequest {
    if let Some(choices) = &request.choices {
        return question_as_stored(request, choices);
    }
    let short = |text: &str, most| text.trim().chars().take(most).collect::<String>().trim_end().to_owned();
    let stored = ApprovalRequest {
        action: excerpt(&request.action, MOST_ACTION),
        details: request.details.as_deref().map(|text| shown_details(text.trim())).filter(|text| !text.is_empty()),
        kind: request.kind.as_deref().map(|text| short(text, MOST_KIND)).filter(|text| !text.is_empty()),
        choices: None,
        options: options_as_stored(&request.options),
    };
    if stored == *request {
        return stored;
    }
    let ApprovalRequest { action, details, kind, options, .. } = request;
    let digest = match &options[..] {
        [] => digest_of(&json!([action, details, kind])),
        options => digest_of(&json!([action, details, kind, options])),
    };
    ApprovalRequest { action: format!("{} ({digest})", excerpt(action, MOST_BEFORE_DIGEST)), ..stored }
}

/// The options of a request as they are stored: few, and each by another name or with another answer.
fn options_as_stored(options: &[ApprovalOption]) -> Vec<ApprovalOption> {
    let mut kept = Vec::with_capacity(options.len().min(MOST_OPTIONS));
    for ApprovalOption { name, allows } in options {
        let option = ApprovalOption { name: shown_option(name), allows: *allows };
        if kept.len() < MOST_OPTIONS && !option.name.is_empty() && !kept.contains(&option) {
            kept.push(option);
        }
    }
    kept
}

/// The name of an option as it is stored and shown: one line of bounded length, without Markdown and hidden characters.
#[must_use]
pub fn shown_option(name: &str) -> String {
    clean(&plain(name), MOST_OPTION).trim_end().to_owned()
}

/// The request itself, if its [stored form](as_stored) is another one and it is not too large to be kept: for who decides on it.
pub(crate) fn whole(request: &ApprovalRequest) -> Option<ApprovalRequest> {
    let ApprovalRequest { action, details, kind, choices, .. } = request;
    let size = [Some(action), details.as_ref(), kind.as_ref()].into_iter().flatten().map(String::len).sum::<usize>();
    let is_kept = size <= MOST_WHOLE && choices.is_none() && as_stored(request) != *request;
    // The options are in the stored form.
    is_kept.then(|| ApprovalRequest { options: Vec::new(), ..request.clone() })
}

/// Details as an approver reads them: of a long text the beginning, the end, and how much is missing between them. At most as many
/// characters as are stored.
fn shown_details(text: &str) -> String {
    let length = text.chars().count();
    if length <= MOST_DETAILS {
        return text.to_owned();
    }
    let (head, tail) = (MOST_DETAILS / 2, MOST_DETAILS / 2 - 100);
    let (beginning, end) = (text.chars().take(head), text.chars().skip(length - tail));
    let (before, after) = CUT;
    let note = format!("{before}{}{after}", length - head - tail);
    beginning.chain(note.chars()).chain(end).collect()
}

/// How many characters are missing in these [details](shown_details). An agent that writes such a note itself can only make it more.
pub(crate) fn left_out(details: &str) -> Option<usize> {
    let (before, after) = CUT;
    let counts = details.split(before).skip(1).filter_map(|rest| rest.split_once(after)?.0.parse().ok());
    counts.max()
}

/// Whether more was asked for than is [stored](as_stored): the action ends with a digest of it. An agent that writes one itself is
/// taken at its word.
#[must_use]
pub fn is_shortened(request: &ApprovalRequest) -> bool {
    let digest = request.action.rsplit_once(" (").and_then(|(_, digest)| digest.strip_suffix(')'));
    let is_of_digest = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    digest.is_some_and(|digest| digest.len() == DIGEST && digest.chars().all(is_of_digest))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn request(action: &str, details: Option<&str>) -> ApprovalRequest {
        ApprovalRequest { details: details.map(str::to_owned), ..ApprovalRequest::action(action) }
    }

    /// Details that differ where they are cut.
    fn middle(differs: &str) -> String {
        let side = "x".repeat(3000);
        format!("{side}{differs}{side}")
    }

    /// What was approved for one must not be approved for the other.
    #[rstest]
    #[case::lines(request("rm a\nb", None), request("rm a b", None))]
    #[case::length(request(&"x".repeat(301), None), request(&"x".repeat(302), None))]
    #[case::details(request("rm a", Some(&"x".repeat(2001))), request("rm a", Some(&"x".repeat(2000))))]
    #[case::blanks(request("rm  a", None), request("rm a", None))]
    #[case::middle(request("rm a", Some(&middle("1"))), request("rm a", Some(&middle("2"))))]
    #[case::shown(request("rm a", Some(&middle("1"))), request("rm a", Some(&shown_details(&middle("1")))))]
    fn two_requests_are_stored_differently(#[case] one: ApprovalRequest, #[case] other: ApprovalRequest) {
        assert_ne!(as_stored(&one), as_stored(&other));
    }

    fn option(name: &str, allows: bool) -> ApprovalOption {
        ApprovalOption { name: name.to_owned(), allows }
    }

    #[test]
    fn options_are_few_and_differ_and_are_one_line_without_markup() {
        let with = |options: &[ApprovalOption]| ApprovalRequest { options: options.to_vec(), ..request("rm a", None) };
        let names = ["**Always**", "A\u{202e}lways\n", "", "\u{200b}", "2", "3", "4", "5", "6", "7"];
        let asked = with(&names.map(|name| option(name, true)));

        let stored = as_stored(&asked);

        assert_eq!(stored.options, ["Always", "2", "3", "4", "5", "6"].map(|name| option(name, true)));
        assert_eq!((as_stored(&stored).options, is_shortened(&stored)), (stored.options.clone(), true));
        let long = as_stored(&with(&[option(&"x".repeat(100), true)]));
        assert_eq!(long.options[0].name.chars().count(), MOST_OPTION);
        let both = [option("Always", true), option("Always", false)];
        assert_eq!(as_stored(&with(&both)), with(&both), "one allows, and the other does not");
        assert_ne!(as_stored(&with(&both[..1])), as_stored(&with(&both[1..])));
    }

    /// It may be stored when it was stored: a blank is the last character that is kept.
    #[rstest]
    #[case(request("pay the rent", Some("to Grace")))]
    #[case(request(&"x ".repeat(400), Some(&format!("{} y", "x".repeat(1999)))))]
    fn what_is_stored_stays_as_it_is(#[case] request: ApprovalRequest) {
        let stored = as_stored(&request);

        assert_eq!(as_stored(&stored), stored);
        assert!(stored.action.chars().count() <= MOST_ACTION);
    }

    #[test]
    fn the_end_of_long_details_is_seen_and_how_much_is_not() {
        let forged = "[… 1 characters are not shown …]";
        let whole = format!("{}\n{forged}\n{}the end", "x".repeat(500), "x".repeat(10_000));

        let text = shown_details(&whole);

        assert!(text.ends_with("the end") && text.chars().count() <= MOST_DETAILS, "{text}");
        assert_eq!(left_out(&text), Some(whole.chars().count() - 1000 - 900));
        let stored = as_stored(&ApprovalRequest { details: Some(text.clone()), ..ApprovalRequest::action("pay") });
        assert_eq!((stored.details, is_shortened(&request("pay", None))), (Some(text), false));
    }

    #[test]
    fn it_is_known_that_a_request_was_shortened() {
        let long = request("pay", Some(&format!("ok{}and more", " ".repeat(3000))));

        assert!(is_shortened(&as_stored(&long)) && !is_shortened(&long));
    }

    #[rstest]
    #[case(&["Red", "Blue"], false, &["Red", "Blue"], false)]
    #[case(&["Red", " Red ", "", "Blue"], true, &["Red", "Blue"], true)]
    #[case(&[], false, &[], true)]
    fn a_question_can_be_answered(
        #[case] options: &[&str],
        #[case] free_text: bool,
        #[case] kept: &[&str],
        #[case] takes_words: bool,
    ) {
        let choices = |options: &[&str], free_text| {
            let options = options.iter().map(|&option| option.to_owned()).collect();
            Choices { options, free_text, expires: None }
        };

        let stored = as_stored(&ApprovalRequest::question(" Which\ncolour? ", choices(options, free_text)));

        assert_eq!(stored, ApprovalRequest::question("Which\ncolour?", choices(kept, takes_words)));
        assert_eq!(as_stored(&stored), stored);
    }

    /// Also those whose difference is cut off, and a stored one stays as it is.
    #[test]
    fn two_questions_are_stored_differently() {
        let question = |text: &str, options: &[&str]| {
            let options = options.iter().map(|&option| option.to_owned()).collect();
            ApprovalRequest::question(text, Choices { options, free_text: false, expires: None })
        };
        let long = "x".repeat(2001);
        let choice = "y".repeat(70);
        let nine = ["1", "2", "3", "4", "5", "6", "7", "8", "9"];
        let pairs = [
            (question(&format!("{long}a"), &[]), question(&format!("{long}b"), &[])),
            (question("?", &[&format!("{choice}a"), "no"]), question("?", &[&format!("{choice}b"), "no"])),
            (question("?", &nine), question("?", &nine[..8])),
        ];

        for (one, other) in pairs {
            let stored = as_stored(&one);
            assert_ne!(stored, as_stored(&other));
            assert_eq!(as_stored(&stored), stored);
            assert!(stored.action.chars().count() <= MOST_QUESTION + 1);
        }
        let alike = as_stored(&question("?", &[&format!("{choice}a"), &format!("{choice}b")]));
        assert_eq!(alike.choices.map(|choices| choices.options.len()), Some(2), "both are there");
    }

    #[test]
    fn a_short_request_is_stored_as_it_is() {
        let short = request("pay the rent", Some("to Grace"));

        assert_eq!((as_stored(&short), whole(&short)), (short, None));
    }

    #[rstest]
    #[case::details(request("pay", Some(&"x".repeat(MOST_WHOLE - 3))), true)]
    #[case::too_long(request("pay", Some(&"x".repeat(MOST_WHOLE - 2))), false)]
    #[case::action(request(&"x".repeat(301), None), true)]
    fn the_whole_of_a_request_is_kept_up_to_a_size(#[case] request: ApprovalRequest, #[case] is_kept: bool) {
        assert_eq!(whole(&request), is_kept.then(|| request.clone()));
        assert_eq!(whole(&as_stored(&request)), None);
    }
}
