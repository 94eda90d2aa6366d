//! `kill -9` at random moments.

use std::{
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

use futures_util::future::join_all;

use super::{Calls, Failure, Platform, SentMessage, check_answered_once, texts, wait_for_text};
use crate::{Script, ScriptedAgent};

const PEOPLE: usize = 4;

/// How often the process is killed.
const KILLS: usize = 25;

/// The longest that it runs after people have written.
const LIFE: Duration = Duration::from_millis(400);

/// How long an agent takes per word.
const WORD: Duration = Duration::from_millis(20);

/// An answer whose first word is unique to its question, so that a draft of it is recognised.
fn answer(question: &str) -> String {
    format!("{} is what was asked and this is what is said", question.replace(' ', "-"))
}

fn question(kill: usize, person: usize) -> String {
    format!("question {kill} {}", person % 2)
}

/// Every other person's agent streams its answer in one piece; for the others it streams word by word.
async fn agent() -> ScriptedAgent {
    ScriptedAgent::start(|call, _| {
        let answer = answer(&call.said());
        let whole = Script::replies(&answer);
        if call.said().ends_with('0') {
            return whole.streaming(&answer).taking(WORD);
        }
        answer.split_inclusive(' ').fold(whole, |script, word| script.streaming(word).taking(WORD))
    })
    .await
}

/// Waits until each person sees the answer to the question that they asked before a kill.
async fn until_all_answered<P: Platform>(platform: &P, people: &[P::Person], kill: usize) {
    for (n, person) in people.iter().enumerate() {
        let answer = answer(&question(kill, n));
        let found = |messages: &[SentMessage]| messages.iter().any(|it| it.text.ends_with(&answer)).then_some(());
        platform.until(person, &answer, found).await;
    }
}

/// A random duration up to `most`.
fn random_duration(most: Duration) -> Duration {
    let number = RandomState::new().hash_one(());
    most.mul_f64(f64::from(u32::try_from(number % 1000).expect("a small number")) / 1000.0)
}

/// People write, agents answer word by word, and the process is killed repeatedly at random moments. Eventually each person
/// has one answer to each question, and beside it only labelled copies.
pub async fn killed_again_and_again_while_answers_grow<P: Platform>(keys: &str) {
    let (platform, agent) = (P::new().await, agent().await);
    let mut gateway = platform
        .gateway(keys)
        .config(&agent.section())
        // Keeps a turn that is interrupted by every kill from being given up: not the subject here.
        .config("[guard]\nsoft_deadline = \"off\"\nhard_deadline = \"1h\"\nmax_runs = 100\n")
        .start()
        .await;
    let people = join_all((0..PEOPLE).map(|_| platform.person())).await;
    // Not every platform lets a bot read back what it missed in a chat that it does not know yet.
    let all_ask = async |kill: usize| {
        join_all(people.iter().enumerate().map(async |(n, person)| platform.says(person, &question(kill, n)).await))
            .await;
    };
    all_ask(0).await;
    until_all_answered(&platform, &people, 0).await;
    // From here on a message arrives before the gateway gets the response, as with a real platform.
    platform.fail_calls(Calls::Sending(""), Failure::Slow, None).await;

    for kill in 1..=KILLS {
        all_ask(kill).await;
        tokio::time::sleep(random_duration(LIFE)).await;
        gateway.kill();
        gateway.restart().await;
    }
    until_all_answered(&platform, &people, KILLS).await;
    gateway.until_settled().await;
    // It removes drafts beside their answers before it ends.
    gateway.stop().await;

    let mut wrong = Vec::new();
    for (n, person) in people.iter().enumerate() {
        let mut messages = platform.messages_of(person).await;
        for kill in 0..=KILLS {
            let answer = answer(&question(kill, n));
            let first = answer.split(' ').next().expect("an answer has words");
            let (about, others) =
                messages.into_iter().partition::<Vec<_>, _>(|it| it.text.split([' ', '\n']).any(|word| word == first));
            messages = others;
            wrong.extend(check_answered_once::<P>(&about, &answer).err());
        }
        if !messages.is_empty() {
            wrong.push(format!("beside the answers: {:#?}", texts(&messages)));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} questions are not answered exactly once: {wrong:#?}",
        wrong.len(),
        PEOPLE * (KILLS + 1)
    );
    assert_eq!(gateway.undeliverable(), 0);
}

/// People write several messages at a time, and the process is repeatedly killed while it works on them: every message is
/// answered, in order. Where the platform shows duplicates, an answer that was interrupted both times it was sent becomes a
/// dead letter for the operator.
pub async fn killed_again_and_again_every_message_is_answered<P: Platform>(place: P::Place, keys: &str) {
    const CROWD: usize = 8;
    const ROUNDS: usize = 5;
    const MESSAGES: usize = 3;
    let (platform, agent) = (P::at(place).await, ScriptedAgent::echoing().await);
    let mut gateway = platform
        .gateway(keys)
        .config(&agent.section())
        // Keeps a turn that is interrupted by every kill from being given up: not the subject here.
        .config("[guard]\nsoft_deadline = \"off\"\nhard_deadline = \"1h\"\nmax_runs = 10\n")
        .start()
        .await;
    let people = join_all((0..CROWD).map(|_| platform.person())).await;
    // Not every platform lets a bot read back what it missed in a chat that it does not know yet.
    join_all(people.iter().map(|person| platform.says(person, "we meet"))).await;
    for person in &people {
        wait_for_text(&platform, person, "we meet").await;
    }

    let question = |round: usize, message: usize| format!("round {round} question {message}");
    for round in 0..ROUNDS {
        let before = agent.calls().len();
        for message in 0..MESSAGES {
            let question = question(round, message);
            join_all(people.iter().map(|person| platform.says(person, &question))).await;
        }
        agent.until_called(before + CROWD).await;
        gateway.kill();
        platform.after_crash().await;
        gateway.restart().await;
    }
    for person in &people {
        wait_for_text(&platform, person, &question(ROUNDS - 1, MESSAGES - 1)).await;
    }
    gateway.until_settled().await;

    let held = gateway.undeliverable();
    let mut unanswered = 0;
    for person in &people {
        let messages = platform.messages_of(person).await;
        let questions = (0..ROUNDS).flat_map(|round| (0..MESSAGES).map(move |message| question(round, message)));
        let answers = std::iter::once("we meet".to_owned()).chain(questions).map(|text| format!("echo {text}"));
        if P::SHOWS_ONCE {
            assert_eq!(texts(&messages), answers.collect::<Vec<_>>());
        } else {
            for answer in answers {
                let about: Vec<_> = messages.iter().filter(|it| it.text.ends_with(&answer)).cloned().collect();
                let plain = about.iter().filter(|it| it.text == answer).count();
                assert!(plain <= 1, "`{answer}` was sent twice without a label: {:#?}", texts(&messages));
                unanswered += usize::from(about.is_empty());
            }
        }
    }
    // The gateway may not know that a message arrived, so a dead letter may be on the platform.
    assert!(unanswered <= held, "{unanswered} are unanswered, and only {held} are dead letters");
    assert!(!P::SHOWS_ONCE || held == 0, "{held} are dead letters");
    assert!(held < CROWD * MESSAGES, "{held} dead letters are too many");
}
