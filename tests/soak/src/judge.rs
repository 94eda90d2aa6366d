//! Judges a run from outside: what people wrote against what they see. What the gateway has stored explains the rest.
//!
//! A signal is found in a chat by the token that the agent repeats. A fallback has none: it is found by its text, and each
//! chat must show it as often as the gateway says that it was sent there.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use serde::Serialize;

use crate::{
    channel::{Platform, Seen},
    crowd::Said,
    evidence::{self, ChatKey, Evidence, Turn},
    words,
};

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Wrong {
    /// Accepted by the platform, and neither a signal nor a turn that says why.
    Lost,
    /// Its turn is settled, and the person sees no signal.
    Silent,
    /// The person sees two final signals, and none of them has the label of a copy.
    Doubled,
    /// Its turn is still owed a signal.
    Overdue,
}

/// A message with something wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Problem {
    pub(crate) wrong: Wrong,
    /// The message, or the text that was seen too often.
    pub(crate) about: String,
    pub(crate) chat: String,
    pub(crate) turn: Option<String>,
    pub(crate) detail: String,
}

/// Times from intake to the first signal, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Wait {
    pub(crate) median: i64,
    pub(crate) longest: i64,
}

/// The figures of a platform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Figures {
    /// Messages that the platform accepted.
    pub(crate) said: usize,
    /// Answers of the agent, complete.
    pub(crate) answers: usize,
    pub(crate) reactions: usize,
    /// Texts of the ladder, and answers to commands.
    pub(crate) texts: usize,
    /// Deferrals, which an answer or another signal followed.
    pub(crate) deferrals: usize,
    /// Turns that a person cancelled.
    pub(crate) cancelled: usize,
    /// Turns that became dead letters although the person sees a signal, and others.
    pub(crate) dead_letters: usize,
    /// Messages with the label of a copy.
    pub(crate) labelled: usize,
    /// Unfinished answers that were left beside a signal, and messages that belong to no turn.
    pub(crate) leftovers: usize,
    pub(crate) wait: Wait,
}

/// The result.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Verdict {
    pub(crate) platforms: BTreeMap<&'static str, Figures>,
    pub(crate) problems: Vec<Problem>,
    /// Examples of leftovers.
    pub(crate) leftovers: Vec<Leftover>,
}

/// What was left in a chat.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Leftover {
    pub(crate) detail: String,
    /// The turn that left it, if that is known.
    pub(crate) turn: Option<String>,
}

impl Verdict {
    fn count(&self, wrong: Wrong) -> usize {
        self.problems.iter().filter(|problem| problem.wrong == wrong).count()
    }

    /// What must be 0, with names for tables.
    pub(crate) fn failures(&self) -> [(&'static str, usize); 4] {
        [
            ("lost", self.count(Wrong::Lost)),
            ("silent", self.count(Wrong::Silent)),
            ("doubled without a label", self.count(Wrong::Doubled)),
            ("overdue at the end", self.count(Wrong::Overdue)),
        ]
    }

    /// The figures of all platforms; the median is 0.
    pub(crate) fn total(&self) -> Figures {
        self.platforms.values().fold(Figures::default(), |sum, it| Figures {
            said: sum.said + it.said,
            answers: sum.answers + it.answers,
            reactions: sum.reactions + it.reactions,
            texts: sum.texts + it.texts,
            deferrals: sum.deferrals + it.deferrals,
            cancelled: sum.cancelled + it.cancelled,
            dead_letters: sum.dead_letters + it.dead_letters,
            labelled: sum.labelled + it.labelled,
            leftovers: sum.leftovers + it.leftovers,
            wait: Wait { median: 0, longest: sum.wait.longest.max(it.wait.longest) },
        })
    }
}

/// What a chat shows about one message.
#[derive(Debug, Default)]
struct Shown {
    /// The whole paragraphs: part and number of parts, and whether its message has the label.
    parts: Vec<(usize, usize, bool)>,
    /// The messages that only begin an answer.
    unfinished: usize,
    reactions: usize,
}

impl Shown {
    /// Whether every part is there.
    fn is_complete(&self) -> bool {
        let seen: BTreeSet<_> = self.parts.iter().map(|(part, _, _)| part).collect();
        self.parts.first().is_some_and(|(_, parts, _)| seen.len() == *parts)
    }

    /// How often the part that is shown most often is shown without a label.
    fn plain(&self) -> usize {
        let mut counts = BTreeMap::new();
        self.parts
            .iter()
            .filter(|(_, _, labelled)| !labelled)
            .for_each(|(part, ..)| *counts.entry(part).or_insert(0) += 1);
        counts.into_values().max().unwrap_or(0)
    }
}

/// How often a chat shows a text without a token.
#[derive(Debug, Default)]
struct Count {
    plain: usize,
    labelled: usize,
}

/// All that people see, sorted by what it is about.
#[derive(Debug, Default)]
struct View<'a> {
    by_token: HashMap<&'a str, Shown>,
    texts: BTreeMap<(&'a ChatKey, &'a str), Count>,
    labelled: HashMap<Platform, usize>,
    /// Messages about a message of another chat, or about none.
    astray: Vec<(&'a ChatKey, &'a str)>,
}

impl<'a> View<'a> {
    fn of(evidence: &'a Evidence) -> Self {
        let homes: HashMap<&str, (Platform, &str)> = evidence
            .said
            .iter()
            .filter_map(|said| Some((words::token_in(&said.text)?, (said.platform, said.chat.as_str()))))
            .collect();
        let mut view = Self::default();
        for (chat, seen) in &evidence.chats {
            let is_home = |token: &str| homes.get(token) == Some(&(chat.0, chat.1.as_str()));
            for seen in seen {
                match seen {
                    Seen::Reaction { to } => {
                        if let Some(token) = words::token_in(to) {
                            view.by_token.entry(token).or_default().reactions += 1;
                        }
                    }
                    Seen::Text(text) => {
                        let (body, is_labelled) = words::without_label(text);
                        *view.labelled.entry(chat.0).or_default() += usize::from(is_labelled);
                        let parts = words::parts_in(body);
                        if parts.is_empty() {
                            let count = view.texts.entry((chat, body)).or_default();
                            *(if is_labelled { &mut count.labelled } else { &mut count.plain }) += 1;
                        } else if parts.iter().any(|part| !is_home(part.token)) {
                            view.astray.push((chat, text));
                            continue;
                        }
                        let is_begun = !parts.is_empty() && parts.iter().all(|part| !part.is_whole);
                        if is_begun {
                            view.by_token.entry(parts[0].token).or_default().unfinished += 1;
                        }
                        for part in parts.iter().filter(|part| part.is_whole) {
                            let shown = view.by_token.entry(part.token).or_default();
                            shown.parts.extend(part.number.map(|(part, parts)| (part, parts, is_labelled)));
                        }
                    }
                }
            }
        }
        view
    }
}

/// The turn of each message, in the order of `said`.
fn turns_of(evidence: &Evidence) -> Vec<Option<&Turn>> {
    let by_id: HashMap<&str, &Turn> = evidence.turns.iter().map(|turn| (turn.id.as_str(), turn)).collect();
    let mut by_token = HashMap::new();
    let mut by_text: HashMap<_, VecDeque<&Turn>> = HashMap::new();
    for turn in &evidence.turns {
        match words::token_in(&turn.text) {
            Some(token) => drop(by_token.entry(token).or_insert(turn)),
            None => by_text
                .entry((turn.platform.as_str(), turn.chat.as_str(), turn.text.as_str()))
                .or_default()
                .push_back(turn),
        }
    }
    let mut turns = Vec::new();
    for said in &evidence.said {
        turns.push(match (&said.turn, words::token_in(&said.text)) {
            (Some(id), _) => by_id.get(id.as_str()).copied(),
            (None, Some(token)) => by_token.get(token).copied(),
            (None, None) => by_text
                .get_mut(&(said.platform.name(), said.chat.as_str(), said.text.as_str()))
                .and_then(VecDeque::pop_front),
        });
    }
    turns
}

/// The final text without a token that the gateway sent for a turn: of the ladder, or the answer to a command.
fn final_text(turn: &Turn) -> Option<&str> {
    let texts = turn.deliveries.iter().filter(|sent| sent.signal == "reply" && words::token_in(&sent.text).is_none());
    texts.filter(|sent| sent.delivered_at.is_some()).map(|sent| sent.text.trim()).next_back()
}

/// Judges a run.
pub(crate) fn judge(evidence: &Evidence) -> Verdict {
    let keys: Vec<ChatKey> = evidence.said.iter().map(|said| (said.platform, said.chat.clone())).collect();
    let view = View::of(evidence);
    let stopped =
        evidence.said.iter().zip(&keys).filter(|(said, _)| said.text == "/stop").map(|(_, key)| key).collect();
    let left = view.texts.iter().map(|(text, count)| (*text, count.plain + count.labelled)).collect();
    let mut case =
        Case { view, stopped, left, tried: BTreeMap::new(), waits: BTreeMap::new(), verdict: Verdict::default() };
    for ((said, key), turn) in evidence.said.iter().zip(&keys).zip(turns_of(evidence)) {
        case.judge_message(said, key, turn);
    }
    case.judge_texts(evidence);
    case.judge_turns(evidence);
    case.into_verdict()
}

/// A verdict that is being formed.
struct Case<'a> {
    view: View<'a>,
    /// The chats where a person said `/stop`.
    stopped: BTreeSet<&'a ChatKey>,
    /// How often each chat shows a text without a token, without those that were attributed to a message.
    left: BTreeMap<(&'a ChatKey, &'a str), usize>,
    /// How often the gateway tried to show a text in a chat.
    tried: BTreeMap<(&'a ChatKey, &'a str), usize>,
    waits: BTreeMap<&'static str, Vec<i64>>,
    verdict: Verdict,
}

impl<'a> Case<'a> {
    fn judge_message(&mut self, said: &Said, key: &'a ChatKey, turn: Option<&'a Turn>) {
        let text = turn.and_then(|turn| self.judge_turn(said, key, turn));
        let nothing = Shown::default();
        let shown = words::token_in(&said.text).and_then(|token| self.view.by_token.get(token)).unwrap_or(&nothing);
        // An answer whose rest could not be sent ends with a text that says so.
        let (is_answered, is_plain) = (shown.is_complete(), shown.parts.iter().all(|(.., labelled)| !labelled));

        let figures = self.verdict.platforms.entry(said.platform.name()).or_default();
        figures.said += 1;
        let mut wrongs = Vec::new();
        match (is_answered, shown.reactions > 0, text) {
            (true, ..) => figures.answers += 1,
            (_, true, _) => figures.reactions += 1,
            (.., Some(_)) => figures.texts += 1,
            _ => match turn {
                Some(turn) if turn.status == "cancelled" && self.stopped.contains(key) => figures.cancelled += 1,
                None => wrongs.push((Wrong::Lost, "there is no turn for it".to_owned())),
                Some(turn) if evidence::is_open(&turn.state) => {
                    wrongs.push((Wrong::Overdue, format!("it is {}", turn.state)));
                }
                Some(turn) if turn.state == "undeliverable" => {
                    wrongs.push((Wrong::Lost, "it is a dead letter".to_owned()));
                }
                Some(turn) => wrongs.push((Wrong::Silent, format!("it is {} and {}", turn.state, turn.status))),
            },
        }
        let mut doubled = |detail| wrongs.push((Wrong::Doubled, detail));
        match (shown.plain(), text) {
            (plain @ 2.., _) => doubled(format!("a part of the answer is shown {plain} times without a label")),
            (_, Some(text)) if is_answered && is_plain => doubled(format!("the answer is shown, and `{text}`")),
            _ if is_answered && shown.reactions > 0 => doubled("the answer is shown, and a reaction".to_owned()),
            _ if is_answered && is_plain && shown.unfinished > 0 => {
                doubled("the answer is shown, and an unfinished one".to_owned());
            }
            _ if shown.unfinished > 0 => {
                figures.leftovers += shown.unfinished;
                let detail = format!("an unfinished answer: {}", said.text);
                self.verdict.leftovers.push(Leftover { detail, turn: turn.map(|turn| turn.id.clone()) });
            }
            _ => {}
        }
        self.verdict.problems.extend(wrongs.into_iter().map(|(wrong, detail)| Problem {
            wrong,
            about: said.text.clone(),
            chat: name(key),
            turn: turn.map(|turn| turn.id.clone()),
            detail,
        }));
    }

    /// Notes what was sent for a turn. Returns its final text without a token, if the chat shows one more of it.
    fn judge_turn(&mut self, said: &Said, key: &'a ChatKey, turn: &'a Turn) -> Option<&'a str> {
        for sent in turn.deliveries.iter().filter(|sent| sent.was_tried && words::token_in(&sent.text).is_none()) {
            *self.tried.entry((key, sent.text.trim())).or_default() += 1;
        }
        let figures = self.verdict.platforms.entry(said.platform.name()).or_default();
        let delivered = turn.deliveries.iter().filter(|sent| sent.delivered_at.is_some());
        figures.deferrals += delivered.filter(|sent| sent.signal == "deferral").count();
        figures.dead_letters += usize::from(turn.state == "undeliverable");
        let first = turn.deliveries.iter().filter_map(|sent| sent.delivered_at).min();
        self.waits.entry(said.platform.name()).or_default().extend(first.map(|at| at - turn.accepted_at));

        let text = final_text(turn)?;
        let left = self.left.get_mut(&(key, text)).filter(|left| **left > 0)?;
        *left -= 1;
        Some(text)
    }

    /// Judges the messages that were not attributed to one message.
    fn judge_texts(&mut self, evidence: &Evidence) {
        for ((key, text), count) in &self.view.texts {
            let tried = self.tried.get(&(*key, *text)).copied().unwrap_or(0);
            let more = count.plain.saturating_sub(tried);
            let detail = format!("shown {} times without a label, and sent for {tried} turns", count.plain);
            if is_final(evidence, text) {
                let doubled =
                    Problem { wrong: Wrong::Doubled, about: (*text).to_owned(), chat: name(key), turn: None, detail };
                self.verdict.problems.extend(std::iter::repeat_n(doubled, more));
            } else if more > 0 {
                self.verdict.platforms.entry(key.0.name()).or_default().leftovers += more;
                let detail = format!("{detail}: {text} ({})", name(key));
                self.verdict.leftovers.push(Leftover { detail, turn: None });
            }
        }
        for (key, text) in &self.view.astray {
            let detail = "it answers a message of another chat".to_owned();
            let (about, chat) = ((*text).to_owned(), name(key));
            self.verdict.problems.push(Problem { wrong: Wrong::Doubled, about, chat, turn: None, detail });
        }
    }

    /// Finds messages that were accepted twice: a caller of a hook sees only the turn that it was told.
    fn judge_turns(&mut self, evidence: &Evidence) {
        let mut tokens = BTreeSet::new();
        for turn in &evidence.turns {
            if words::token_in(&turn.text).is_some_and(|token| !tokens.insert(token)) {
                let (about, chat) = (turn.text.clone(), format!("{} {}", turn.platform, turn.chat));
                let (turn, detail) = (Some(turn.id.clone()), "it has two turns".to_owned());
                self.verdict.problems.push(Problem { wrong: Wrong::Doubled, about, chat, turn, detail });
            }
        }
    }

    fn into_verdict(self) -> Verdict {
        let mut verdict = self.verdict;
        for (platform, count) in self.view.labelled {
            verdict.platforms.entry(platform.name()).or_default().labelled = count;
        }
        for (platform, mut waits) in self.waits {
            waits.sort_unstable();
            let [median, longest] =
                [waits.get(waits.len() / 2), waits.last()].map(|wait| wait.copied().unwrap_or_default());
            verdict.platforms.entry(platform).or_default().wait = Wait { median, longest };
        }
        verdict
    }
}

/// The name of a chat, for people.
fn name((platform, chat): &ChatKey) -> String {
    format!("{} {chat}", platform.name())
}

/// Whether the gateway uses a text for a final signal anywhere.
fn is_final(evidence: &Evidence, text: &str) -> bool {
    evidence.turns.iter().any(|turn| turn.deliveries.iter().any(|it| it.signal == "reply" && it.text.trim() == text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Sent;

    const FAILED: &str = "Sorry, I could not finish that.";

    fn said(text: &str) -> Said {
        Said { platform: Platform::Telegram, chat: "7".to_owned(), text: text.to_owned(), turn: None }
    }

    fn turn(text: &str, state: &str, status: &str) -> Turn {
        let (platform, chat) = ("telegram".to_owned(), "7".to_owned());
        let [id, text, state, status] = [text, text, state, status].map(str::to_owned);
        Turn { id, platform, chat, text, state, status, accepted_at: 1_000, deliveries: Vec::new() }
    }

    fn sent(turn: Turn, signal: &str, text: &str, after: i64) -> Turn {
        let (signal, text) = (signal.to_owned(), text.to_owned());
        let mut turn = turn;
        let delivered_at = Some(turn.accepted_at + after);
        turn.deliveries.push(Sent { signal, text, was_tried: true, delivered_at });
        turn
    }

    fn answered(text: &str) -> Turn {
        let answer = words::answer(words::token_in(text).expect("a token"));
        sent(turn(text, "settled", "answered"), "reply", &answer, 300)
    }

    fn judged(said: Vec<Said>, turns: Vec<Turn>, seen: &[&str]) -> Verdict {
        let seen = seen.iter().map(|text| Seen::Text((*text).to_owned())).collect();
        let chats = BTreeMap::from([((Platform::Telegram, "7".to_owned()), seen)]);
        judge(&Evidence { said, turns, chats })
    }

    fn wrong(verdict: &Verdict) -> Vec<Wrong> {
        verdict.problems.iter().map(|problem| problem.wrong).collect()
    }

    #[test]
    fn an_answered_message_is_fine() {
        let verdict = judged(
            vec![said("answer tg000001")],
            vec![sent(answered("answer tg000001"), "deferral", "Wait.", 200)],
            &[&words::answer("tg000001")],
        );

        assert_eq!(wrong(&verdict), []);
        let wait = Wait { median: 200, longest: 200 };
        let figures = Figures { said: 1, answers: 1, deferrals: 1, wait, ..Figures::default() };
        assert_eq!(verdict.platforms["telegram"], figures);
    }

    #[test]
    fn a_message_without_a_turn_is_lost() {
        assert_eq!(wrong(&judged(vec![said("answer tg000001")], vec![], &[])), [Wrong::Lost]);
    }

    #[test]
    fn a_dead_letter_that_nobody_sees_is_lost() {
        let dead = turn("answer tg000001", "undeliverable", "undeliverable");

        assert_eq!(wrong(&judged(vec![said("answer tg000001")], vec![dead], &[])), [Wrong::Lost]);
    }

    #[test]
    fn a_settled_turn_whose_signal_nobody_sees_is_silent() {
        let answered = answered("answer tg000001");
        assert_eq!(wrong(&judged(vec![said("answer tg000001")], vec![answered], &[])), [Wrong::Silent]);

        let fallback = sent(turn("fail tg000001", "settled", "answered"), "reply", FAILED, 300);
        assert_eq!(wrong(&judged(vec![said("fail tg000001")], vec![fallback], &["Wait."])), [Wrong::Silent]);
    }

    #[test]
    fn one_fallback_does_not_serve_two_messages() {
        let turn = |text| sent(turn(text, "settled", "answered"), "reply", FAILED, 300);
        let said = vec![said("fail tg000001"), said("fail tg000002")];

        let verdict = judged(said, vec![turn("fail tg000001"), turn("fail tg000002")], &[FAILED]);

        assert_eq!(wrong(&verdict), [Wrong::Silent]);
    }

    #[test]
    fn a_deferral_is_not_a_final_signal() {
        let open = sent(turn("slow tg000001", "deferred", "deferred"), "deferral", "Wait.", 300);

        assert_eq!(wrong(&judged(vec![said("slow tg000001")], vec![open], &["Wait."])), [Wrong::Overdue]);
    }

    #[test]
    fn two_answers_without_a_label_are_doubled() {
        let answer = words::answer("tg000001");
        let verdict = judged(vec![said("answer tg000001")], vec![answered("answer tg000001")], &[&answer, &answer]);

        assert_eq!(wrong(&verdict), [Wrong::Doubled]);
    }

    #[test]
    fn a_copy_with_a_label_is_not_doubled() {
        let answer = words::answer("tg000001");
        let copy = format!("{}\n\n{answer}", words::LABEL);
        let verdict = judged(vec![said("answer tg000001")], vec![answered("answer tg000001")], &[&answer, &copy]);

        assert_eq!(wrong(&verdict), []);
        assert_eq!(verdict.platforms["telegram"].labelled, 1);
    }

    #[test]
    fn an_answer_and_a_fallback_are_doubled() {
        let both = sent(answered("answer tg000001"), "reply", FAILED, 500);
        let verdict = judged(vec![said("answer tg000001")], vec![both], &[&words::answer("tg000001"), FAILED]);

        assert_eq!(wrong(&verdict), [Wrong::Doubled]);
    }

    #[test]
    fn a_fallback_that_is_shown_more_often_than_it_was_sent_is_doubled() {
        let fallback = sent(turn("fail tg000001", "settled", "answered"), "reply", FAILED, 300);

        let verdict = judged(vec![said("fail tg000001")], vec![fallback], &[FAILED, FAILED]);

        assert_eq!(wrong(&verdict), [Wrong::Doubled]);
    }

    #[test]
    fn a_beginning_beside_the_answer_is_doubled() {
        let answer = words::answer("tg000001");
        let verdict =
            judged(vec![said("stream tg000001")], vec![answered("stream tg000001")], &[&answer[..30], &answer]);

        assert_eq!(wrong(&verdict), [Wrong::Doubled]);
    }

    #[test]
    fn a_missing_part_is_silence_and_a_repeated_one_is_doubled() {
        let answer = words::long_answer("tg000001", 3, 100);
        let parts: Vec<_> = answer.split("\n\n").collect();
        let judged = |seen: &[&str]| wrong(&judged(vec![said("long tg000001")], vec![answered("long tg000001")], seen));

        assert_eq!(judged(&parts), []);
        assert_eq!(judged(&parts[..2]), [Wrong::Silent]);
        assert_eq!(judged(&[parts[0], parts[1], parts[1], parts[2]]), [Wrong::Doubled]);
    }

    #[test]
    fn an_answer_in_the_wrong_chat_is_seen() {
        let chats = ["7", "8"].map(|chat| ((Platform::Telegram, chat.to_owned()), Vec::new()));
        let mut chats = BTreeMap::from(chats);
        let (answer, place) = (Seen::Text(words::answer("tg000001")), (Platform::Telegram, "8".to_owned()));
        chats.insert(place, vec![answer]);
        let evidence =
            Evidence { said: vec![said("answer tg000001")], turns: vec![answered("answer tg000001")], chats };

        assert_eq!(wrong(&judge(&evidence)), [Wrong::Silent, Wrong::Doubled]);
    }

    #[test]
    fn a_message_with_two_turns_is_doubled() {
        let mut again = answered("answer tg000001");
        again.id = "another".to_owned();
        let turns = vec![answered("answer tg000001"), again];

        assert_eq!(
            wrong(&judged(vec![said("answer tg000001")], turns, &[&words::answer("tg000001")])),
            [Wrong::Doubled]
        );
    }

    #[test]
    fn only_a_stop_cancels() {
        let cancelled = turn("slow tg000001", "settled", "cancelled");
        let stop = sent(turn("/stop", "settled", "answered"), "reply", "Cancelled.", 10);

        assert_eq!(wrong(&judged(vec![said("slow tg000001")], vec![cancelled.clone()], &[])), [Wrong::Silent]);
        let verdict = judged(vec![said("slow tg000001"), said("/stop")], vec![cancelled, stop], &["Cancelled."]);
        assert_eq!(wrong(&verdict), []);
        assert_eq!(verdict.platforms["telegram"].cancelled, 1);
    }
}
