//! Reads messages that pick from an open question in words: by its number, by its position, or by its text.

use std::time::Duration;

use crate::{
    conversations::addresses::Addresses,
    intake::arrival::{Arrival, Verdict, end},
    model::{AskedQuestion, ConversationId, Directed, EventKind, InboundEvent, QuestionRecord, Quote},
    ports::StoreError,
    questions::{
        backlog_question::BacklogQuestion,
        open_questions::{Asks, OpenQuestions, PAGE},
    },
};

/// For how long after a question words pick from it that are no reply to it.
const REMEMBERED: Duration = Duration::from_hours(24);

/// How far the platform's clock may be behind ours.
const CLOCKS: Duration = Duration::from_mins(1);

/// How long a text may be that picks from choices, in bytes. What is longer is no choice.
const LONGEST: usize = 400;

/// Words for the first choice, the second and so on, by language.
const PLACES: [&[&str]; 10] = [
    &["first", "1st", "erste", "erster", "erstes", "ersten", "primero", "primera", "primer"],
    &["second", "2nd", "zweite", "zweiter", "zweites", "zweiten", "segundo", "segunda"],
    &["third", "3rd", "dritte", "dritter", "drittes", "dritten", "tercero", "tercera", "tercer"],
    &["fourth", "4th", "vierte", "vierter", "viertes", "vierten", "cuarto", "cuarta"],
    &["fifth", "5th", "fünfte", "fünfter", "fünftes", "fünften", "quinto", "quinta"],
    &["sixth", "6th", "sechste", "sechster", "sechstes", "sechsten", "sexto", "sexta"],
    &["seventh", "7th", "siebte", "siebter", "siebtes", "siebten", "séptimo", "séptima"],
    &["eighth", "8th", "achte", "achter", "achtes", "achten", "octavo", "octava"],
    &["ninth", "9th", "neunte", "neunter", "neuntes", "neunten", "noveno", "novena"],
    &["tenth", "10th", "zehnte", "zehnter", "zehntes", "zehnten", "décimo", "décima"],
];

/// Words that may stand before or after such a word.
const AROUND: [&str; 14] =
    ["the", "one", "option", "choice", "der", "die", "das", "den", "antwort", "el", "la", "lo", "opción", "uno"];

/// Makes a message that picks from an open question in words a pick, and lets every pick quote its question.
pub(in crate::intake) async fn pick(
    arrival: &mut Arrival,
    addresses: &Addresses,
    questions: &OpenQuestions,
    backlog_question: &BacklogQuestion,
) -> Verdict {
    match arrival.event.kind {
        EventKind::Choice { turn } => {
            arrival.asks = questions.asks(turn).await?;
            let Some(record) = questions.of(turn).await? else { return Ok(()) };
            // A press may name any question, and quotes only one of its own conversation.
            let is_here = arrival.conversation(addresses).await?.id == record.question.conversation;
            if matches!(arrival.asks, Some(Asks::Run(_))) {
                let choice = if is_here { chosen(&record, &arrival.event, questions).await? } else { None };
                let Some(choice) = choice else { return end(None) };
                arrival.event.text = choice;
            } else if is_here
                && arrival.asks.is_some()
                && let Some(index) = picked(&arrival.event.text, &record.question.choices)
            {
                // An old message comes without the words of its buttons.
                arrival.event.text.clone_from(&record.question.choices[index]);
            }
            let event = &mut arrival.event;
            event.quoted = event.quoted.take().or_else(|| is_here.then(|| quote(&record.question)));
        }
        EventKind::Message if may_pick(&arrival.event) => {
            let here = arrival.conversation(addresses).await?;
            if !here.has_open_question {
                return Ok(());
            }
            let event = &arrival.event;
            let replied_to = replied_to(event);
            let mut open = match replied_to {
                Some(message) => questions.open_as(here.id, message).await?,
                None => questions.open_in(here.id).await?,
            };
            if replied_to.is_none() && open.is_empty() {
                addresses.forget(&event.conversation);
            }
            open.retain(|record| !arrival.answered.contains(&record.question.turn));
            let open = fit(open, questions, backlog_question, here.id, event).await?;
            if let Some((pick, asks)) = picked_from(&open, event).or_else(|| words_to(&open, event)) {
                (arrival.event, arrival.asks) = (pick, asks);
            } else if let Some(asks) = names_no_choice(&open, event) {
                arrival.asks = Some(asks);
            }
        }
        _ => {}
    }
    Ok(())
}

/// The choice of a question that a press is. `None`: the button is not that of the question, which may be a later one of its turn.
async fn chosen(
    record: &QuestionRecord,
    event: &InboundEvent,
    questions: &OpenQuestions,
) -> Result<Option<String>, StoreError> {
    let QuestionRecord { question, is_shown, message_ids, .. } = record;
    let other = event.message_id.as_ref().filter(|message| !message_ids.contains(message));
    let is_of_another = match other {
        Some(message) => questions.is_another_message_of(question.turn, message).await?,
        None => false,
    };
    if !is_shown || is_of_another {
        return Ok(None);
    }
    // An old message may come without the words of its buttons.
    Ok(picked(&event.text, &question.choices).and_then(|index| question.choices.get(index)).cloned())
}

/// An open question, with its subject if it is one of the gateway's own.
type Open = (QuestionRecord, Option<Asks>);

/// Those of the `open` questions that a message may mean.
async fn fit(
    open: Vec<QuestionRecord>,
    questions: &OpenQuestions,
    backlog_question: &BacklogQuestion,
    conversation: ConversationId,
    event: &InboundEvent,
) -> Result<Vec<Open>, StoreError> {
    let is_reply = replied_to(event).is_some();
    let has_words = |record: &QuestionRecord| has_words(record, &event.text);
    // Those that were not read may have these words as well.
    let is_only_one = open.len() < PAGE as usize && open.iter().filter(|record| has_words(record)).count() == 1;
    let mut left = Vec::with_capacity(open.len());
    for mut record in open {
        let asks = questions.asks(record.question.turn).await?;
        let is_fit = match asks {
            // It has letters, so a number in a reply to it means nothing.
            Some(Asks::Digest(_)) if is_reply => has_words(&record),
            // It must not be decided by accident: without a reply it takes the words of the choice, and of no other question's.
            Some(Asks::LetIn | Asks::Link(_) | Asks::Approve(..) | Asks::Digest(_)) => {
                is_reply || is_only_one && has_words(&record)
            }
            Some(Asks::AboutBacklog | Asks::Run(_)) | None => true,
        };
        // Only late messages can have come since: any other closes the question. Without them it asks nothing.
        if asks == Some(Asks::AboutBacklog) && !is_reply {
            record.is_overtaken = backlog_question.postponed(conversation).await?.is_empty();
        }
        if is_fit {
            left.push((record, asks));
        }
    }
    Ok(left)
}

/// Whether a text is the words of a choice.
fn has_words(record: &QuestionRecord, text: &str) -> bool {
    let text = plain(text);
    record.question.choices.iter().any(|choice| plain(choice) == text)
}

/// Whether a text begins as a command does. A path does not.
fn is_command(text: &str) -> bool {
    let name = text.strip_prefix('/').and_then(|rest| rest.split_whitespace().next());
    name.is_some_and(|name| !name.contains(['/', '.']))
}

fn quote(question: &AskedQuestion) -> Quote {
    Quote::of_ours(&question.text)
}

/// Whether a message can be a pick: words of the sender's own for the agent, and nothing else.
fn may_pick(event: &InboundEvent) -> bool {
    let text = event.text.trim();
    let is_persons = event.sender.kind.is_human();
    let is_new = event.attachments.is_empty() && event.amends.is_none();
    let is_plain = event.forwarded.is_none() && (is_new || is_of_words(event));
    let is_text = !text.is_empty() && !is_command(text);
    is_persons && is_plain && is_text && event.directed != Directed::Ambient
}

/// Whether an event brings the words of a voice note that came earlier.
fn is_of_words(event: &InboundEvent) -> bool {
    event.is_heard() && event.is_spoken()
}

/// The answer that a message is, in words of the person's own, to what a run waits for. A later question of an agent comes first.
fn words_to(open: &[Open], event: &InboundEvent) -> Option<(InboundEvent, Option<Asks>)> {
    for (record, asks) in open.iter().filter(|(record, _)| is_asked(record, event)) {
        let question = &record.question;
        match asks {
            Some(Asks::Run(_)) if question.free_text => {
                return Some((answer(question, event.text.clone(), event), *asks));
            }
            None if is_meant(record, event) => return None,
            _ => {}
        }
    }
    None
}

/// The pick that a message is: from the question that it replies to, else from the latest one that its sender may pick from and
/// has not passed over.
fn picked_from(open: &[Open], event: &InboundEvent) -> Option<(InboundEvent, Option<Asks>)> {
    let (QuestionRecord { question, .. }, asks) =
        open.iter().find(|(record, _)| is_asked(record, event) && is_meant(record, event))?;
    let choice = question.choices.get(picked(&event.text, &question.choices)?)?;
    Some((answer(question, choice.clone(), event), *asks))
}

/// The request that a message replies to with the place of none of its choices: it is no message for the agent.
fn names_no_choice(open: &[Open], event: &InboundEvent) -> Option<Asks> {
    let names_place = names_place(&plain(&event.text));
    let (_, asks) = open.iter().find(|(record, _)| is_asked(record, event))?;
    asks.filter(|asks| names_place && replied_to(event).is_some() && matches!(asks, Asks::Approve(..)))
}

/// Whether a question was asked of the sender of a message, and before it.
fn is_asked(record: &QuestionRecord, event: &InboundEvent) -> bool {
    let AskedQuestion { chooser, expires_at, asked_at, .. } = &record.question;
    let is_theirs = chooser.as_ref().is_none_or(|chooser| *chooser == event.sender.id);
    // What was sent before it was asked, and comes late, answers something else.
    let is_older = event.sent_at.is_some_and(|sent_at| sent_at + CLOCKS < *asked_at)
        || (is_of_words(event) && event.received_at < *asked_at);
    let is_this = replied_to(event).is_none_or(|message| record.message_ids.contains(message));
    record.is_shown && is_theirs && !is_older && is_this && expires_at.is_none_or(|at| at > event.received_at)
}

/// Whether a message that is no reply may mean a question: a number that is written much later, or after something else, means
/// something else.
fn is_meant(record: &QuestionRecord, event: &InboundEvent) -> bool {
    let is_late = record.is_overtaken || event.received_at >= record.question.asked_at + REMEMBERED;
    replied_to(event).is_some() || !is_late
}

/// A message as the answer to a question.
fn answer(question: &AskedQuestion, text: String, event: &InboundEvent) -> InboundEvent {
    InboundEvent {
        kind: EventKind::Choice { turn: question.turn },
        text,
        said: Some(event.text.clone()),
        quoted: event.quoted.clone().or_else(|| Some(quote(question))),
        ..event.clone()
    }
}

/// The message that a message replies to.
fn replied_to(event: &InboundEvent) -> Option<&String> {
    event.quoted.as_ref().and_then(|quoted| quoted.message_id.as_ref())
}

/// The index of the choice that a text picks. The text of a choice comes before its number: choices may be numbers.
fn picked(text: &str, choices: &[String]) -> Option<usize> {
    if text.trim().len() > LONGEST {
        return None;
    }
    if let Some(index) = choices.iter().position(|choice| choice.trim() == text.trim()) {
        return Some(index);
    }
    let text = plain(text);
    if text.is_empty() {
        return None;
    }
    if let Some(index) = choices.iter().position(|choice| plain(choice) == text) {
        return Some(index);
    }
    let index = number(&text).or_else(|| ordinal(&text)).filter(|index| *index < choices.len())?;
    // "2" may be the second choice, or the one that begins with 2.
    let begins_with_it = |choice: &String| plain(choice).split_whitespace().next() == Some(&*text);
    choices.iter().position(begins_with_it).is_none_or(|other| other == index).then_some(index)
}

/// A text in lower case, without what stands around it: spaces, the end of a sentence, the bracket after a number, and the marks
/// that make a number an emoji.
fn plain(text: &str) -> String {
    let text = text.trim_matches(|c: char| c.is_whitespace() || ".,!)\u{fe0f}\u{20e3}".contains(c));
    text.to_lowercase()
}

/// Whether a text is a number or a position, of any choice or of none.
fn names_place(text: &str) -> bool {
    digits(text).is_some() || ordinal(text).is_some() || only_word(text).is_some_and(|word| digits(word).is_some())
}

fn digits(text: &str) -> Option<String> {
    let digits = text.strip_prefix('#').unwrap_or(text).replace('\u{fe0f}', "");
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(digits)
}

fn number(text: &str) -> Option<usize> {
    digits(text)?.parse::<usize>().ok()?.checked_sub(1)
}

fn ordinal(text: &str) -> Option<usize> {
    let word = only_word(text)?;
    PLACES.iter().position(|names| names.contains(&word)).or_else(|| number(word))
}

/// The word of a text that has no other one but [those around it](AROUND).
fn only_word(text: &str) -> Option<&str> {
    let mut words = text.split_whitespace().filter(|word| !AROUND.contains(word));
    let (word, rest) = (words.next()?, words.next());
    rest.is_none().then_some(word)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};
    use rstest::rstest;

    use super::*;

    fn choices(choices: &[&str]) -> Vec<String> {
        choices.iter().map(|choice| (*choice).to_owned()).collect()
    }

    #[rstest]
    #[case("2")]
    #[case(" 2. ")]
    #[case("2)")]
    #[case("#2")]
    #[case("2\u{fe0f}\u{20e3}")]
    #[case("second")]
    #[case("Second one!")]
    #[case("the second one")]
    #[case("2nd")]
    #[case("option 2")]
    #[case("zweite")]
    #[case("Die zweite Antwort")]
    #[case("la segunda")]
    #[case("El segundo.")]
    #[case(" never MIND ")]
    #[case("Never mind.")]
    fn a_choice_is_picked_in_words(#[case] text: &str) {
        assert_eq!(picked(text, &choices(&["Tell me more", "Never mind", "Go on"])), Some(1));
    }

    #[rstest]
    #[case("")]
    #[case("0")]
    #[case("4")]
    #[case("-1")]
    #[case("fourth")]
    #[case("one")]
    #[case("the first and the second")]
    #[case("second thoughts")]
    #[case("never")]
    #[case("2 more")]
    #[case("99999999999999999999999")]
    fn what_is_no_choice_picks_nothing(#[case] text: &str) {
        assert_eq!(picked(text, &choices(&["Tell me more", "Never mind", "Go on"])), None);
    }

    #[rstest]
    #[case("9", true)]
    #[case("0", true)]
    #[case("99999999999999999999999", true)]
    #[case("#9", true)]
    #[case("9\u{fe0f}\u{20e3}", true)]
    #[case("Option 9", true)]
    #[case("option 0", true)]
    #[case("The ninth one!", true)]
    #[case("", false)]
    #[case("option", false)]
    #[case("9 more", false)]
    #[case("not yet", false)]
    fn a_place_is_known_also_where_nothing_is(#[case] text: &str, #[case] is_place: bool) {
        assert_eq!(names_place(&plain(text)), is_place);
    }

    /// Pieces of choices, and of what people write.
    const PIECES: [&str; 26] = [
        " ", ".", ")", "!", "#", "-", "+", "1", "2", "3", "10", "first", "second", "Erste", "la", "the", "one",
        "option", "tea", "Tea", "\u{fe0f}", "\u{20e3}", "👍", "É", "İ", "ß",
    ];

    fn texts() -> impl Strategy<Value = String> {
        prop_oneof![vec(select(&PIECES), 0..6).prop_map(|pieces| pieces.concat()), "\\PC{0,12}"]
    }

    proptest! {
        #[test]
        fn only_what_is_offered_is_picked(text in texts(), offered in vec(texts(), 0..9)) {
            if let Some(index) = picked(&text, &offered) {
                prop_assert!(index < offered.len());
                let is_its_words = plain(&offered[index]) == plain(&text);
                // A text that is no choice's own words names its place.
                let is_its_place = plain(&text).contains(&(index + 1).to_string())
                    || PLACES.get(index).is_some_and(|names| names.iter().any(|name| plain(&text).contains(name)));
                prop_assert!(is_its_words || is_its_place, "{:?} picked {} of {:?}", text, index, offered);
            }
        }

        #[test]
        fn the_words_of_a_choice_pick_it(offered in vec(texts(), 1..9), which: prop::sample::Index, space in "[ \n\t]{0,3}") {
            let choice = which.get(&offered);
            if !choice.trim().is_empty() {
                let index = picked(&format!("{space}{choice}{space}"), &offered).expect("a pick");
                prop_assert_eq!(offered[index].trim(), choice.trim());
            }
        }

        #[test]
        fn a_number_picks_its_place(count in 1..9_usize, number in 0..12_usize, dressed in "[ ]?#?N[.)]?(\u{fe0f})?(\u{20e3})?[ ]?") {
            let offered: Vec<_> = (0..count).map(|index| format!("choice {}", char::from(b'a' + u8::try_from(index).expect("few")))).collect();
            let said = dressed.replace('N', &number.to_string());
            let expected = number.checked_sub(1).filter(|index| *index < count);
            prop_assert_eq!(picked(&said, &offered), expected, "{:?}", said);
        }
    }

    #[test]
    fn a_number_that_is_a_choice_is_that_choice() {
        assert_eq!(picked("2", &choices(&["4", "3", "2"])), Some(2));
        assert_eq!(picked("2", &choices(&["2 people", "4 people"])), None, "it may be either");
        assert_eq!(picked("1", &choices(&["1 person", "4 people"])), Some(0));
    }
}
