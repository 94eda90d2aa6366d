//! Tests of the chat's socket with the real core and a real store.

mod pushes;
mod support;

use rejoinder_webchat::Access;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_tungstenite::tungstenite;

use support::Chat;

const HERE: &str = "a-conversation-of-tests";
const ELSEWHERE: &str = "another-conversation-01";

/// I3.
#[tokio::test]
async fn a_message_is_accepted_and_then_answered() {
    let chat = Chat::open().await;
    let (mut page, welcome) = chat.page(HERE).await;
    assert_eq!((&welcome["turns"], &welcome["more"]), (&json!([]), &json!(false)));

    page.says_text("message-1", "hello").await;

    let accepted = page.hears("accepted").await;
    let turn = page.sees("answered").await;
    assert_eq!((&accepted["id"], &accepted["turn_id"]), (&json!("message-1"), &turn["turn_id"]));
    assert_eq!(
        (&turn["text"], &turn["shown"]["html"]),
        (&json!("hello"), &json!("<p dir=\"auto\"><em>hello</em></p>"))
    );
}

#[tokio::test]
async fn the_welcome_lists_the_commands_and_names_the_agent() {
    let chat = Chat::open().await;

    let (_, welcome) = chat.page(HERE).await;

    let commands = welcome["commands"].as_array().expect("a list of commands");
    let stop = commands.iter().find(|command| command["name"] == "stop").expect("a command to stop");
    assert!(stop["description"].as_str().is_some_and(|words| !words.is_empty()), "{stop}");
    assert_eq!(stop["takes_text"], false);
    assert!(welcome["agent"].as_str().is_some_and(|name| !name.is_empty()), "{welcome}");
    assert!(welcome["now"].as_str().is_some_and(|now| now.ends_with('Z')), "{welcome}");
}

/// A fallback, and the answer to a command, are not the agent's.
#[tokio::test]
async fn an_answer_says_who_speaks() {
    let chat = Chat::open().await;
    let (mut page, welcome) = chat.page(HERE).await;
    let mut voices = Vec::new();

    for (id, text) in [("message-1", "hello"), ("message-2", "be silent"), ("message-3", "/help")] {
        page.says_text(id, text).await;
        let shown = page.sees("answered").await["shown"].take();
        voices.push((shown["agent"].clone(), shown["fallback"].clone()));
    }

    let nobody = json!(null);
    assert_eq!(
        voices,
        [(welcome["agent"].clone(), nobody.clone()), (nobody.clone(), json!(true)), (nobody.clone(), nobody)]
    );
}

/// K3.
#[tokio::test]
async fn a_file_of_an_answer_is_a_link() {
    let chat = Chat::open().await;
    let (mut page, _) = chat.page(HERE).await;
    page.says_text("message-1", "hello").await;
    page.sees("answered").await;

    page.says_text("message-2", "/export").await;

    let file = page.sees("answered").await["shown"]["files"][0].take();
    assert_eq!((&file["name"], &file["type"]), (&json!("conversation.md"), &json!("text/markdown")));
    assert!(file["url"].as_str().is_some_and(|url| url.starts_with("/files/")), "{file}");
}

/// B10.
#[tokio::test]
async fn a_reaction_is_the_answer() {
    let chat = Chat::open().await;
    let (mut page, _) = chat.page(HERE).await;

    page.says_text("message-1", "react").await;

    let shown = page.sees("answered").await["shown"].take();
    assert_eq!((&shown["signal"], &shown["text"]), (&json!("reaction"), &json!("👍")));
}

/// Only where a page with the ids of the conversations looks for it.
#[tokio::test]
async fn what_was_said_is_found_in_the_conversations_of_the_page() {
    let chat = Chat::open().await;
    let (mut page, _) = chat.page(ELSEWHERE).await;
    page.says_text("message-1", "a pear").await;
    page.sees("answered").await;
    let (mut page, welcome) = chat.page(HERE).await;
    page.says_text("message-1", "a pear tree").await;
    let turn = page.sees("answered").await;

    let here = page.finds("pear", &[HERE], 2).await;
    let both = page.finds("pear", &[HERE, ELSEWHERE, "a-conversation-of-nobody"], 4).await;

    let line = |line: &Value| ["conversation", "turn_id", "speaker", "agent", "excerpt"].map(|key| line[key].clone());
    let turn = &turn["turn_id"];
    let answered = [json!(HERE), turn.clone(), json!("agent"), welcome["agent"].clone(), json!("*a pear tree*")];
    let asked = [json!(HERE), turn.clone(), json!("person"), json!(null), json!("a pear tree")];
    assert_eq!(here.iter().map(line).collect::<Vec<_>>(), [answered, asked]);
    assert_eq!(both[..2], here[..]);
    assert!(both[2..].iter().all(|line| line["conversation"] == ELSEWHERE), "{both:?}");
    for (conversations, code) in [(json!(["short"]), "bad_conversation"), (json!(vec![HERE; 300]), "bad_frame")] {
        page.says(&json!({"type": "search", "id": "other", "text": "pear", "conversations": conversations})).await;
        let error = page.hears("error").await;
        assert_eq!((&error["id"], &error["code"]), (&json!("other"), &json!(code)));
    }
}

#[tokio::test]
async fn a_message_may_take_the_place_of_the_last_one() {
    let chat = Chat::open().await;
    let (mut page, _) = chat.page(HERE).await;
    page.says_text("message-1", "hello").await;
    let first = page.sees("answered").await;

    let frame = json!({"type": "message", "id": "message-2", "text": "good day", "instead_of": first["turn_id"]});
    page.says(&frame).await;

    let second = page.sees("answered").await;
    assert_eq!((&second["text"], &second["instead_of"]), (&json!("good day"), &first["turn_id"]));
    assert_eq!(first["instead_of"], json!(null));
}

/// E6.
#[tokio::test]
async fn what_is_sent_again_is_not_doubled() {
    let chat = Chat::open().await;
    let (mut page, _) = chat.page(HERE).await;
    page.says_text("message-1", "hello").await;
    let first = page.hears("accepted").await;
    page.sees("answered").await;

    let (mut page, _) = chat.page(HERE).await;
    page.says_text("message-1", "hello").await;
    let second = page.hears("accepted").await;

    let (_, welcome) = chat.page(HERE).await;
    assert_eq!(first["turn_id"], second["turn_id"]);
    assert_eq!(welcome["turns"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn an_id_stands_for_the_same_words() {
    let chat = Chat::open().await;
    let (mut page, _) = chat.page(HERE).await;
    page.says_text("message-1", "hello").await;
    page.hears("accepted").await;

    page.says_text("message-1", "something else").await;

    let error = page.hears("error").await;
    assert_eq!((&error["code"], &error["retry"]), (&json!("id_reused"), &json!(false)));
}

/// D1, B13.
#[tokio::test]
async fn what_was_missed_is_there_after_a_reconnect() {
    let chat = Chat::open().await;
    let (mut page, _) = chat.page(HERE).await;
    page.says_text("message-1", "wait").await;
    let accepted = page.hears("accepted").await;
    drop(page);

    let (mut page, welcome) = chat.page(HERE).await;
    assert_eq!(welcome["turns"][0]["status"], "accepted");
    chat.release_agent();

    let turn = page.sees("answered").await;
    let (_, welcome) = chat.page(HERE).await;
    assert_eq!((&turn["turn_id"], &turn["shown"]["text"]), (&accepted["turn_id"], &json!("waited")));
    assert_eq!(welcome["turns"], json!([turn]));
}

/// B13.
#[tokio::test]
async fn a_draft_is_shown_while_it_is_written() {
    let chat = Chat::open().await;
    let (mut page, _) = chat.page(HERE).await;

    page.says_text("message-1", "write slowly").await;
    let draft = page.hears("draft").await;
    chat.release_agent();

    let turn = page.sees("answered").await;
    assert_eq!((&draft["turn_id"], &draft["html"]), (&turn["turn_id"], &json!("<p dir=\"auto\">**so</p>")));
    assert_eq!(turn["shown"]["html"], "<p dir=\"auto\"><strong>so</strong> it is</p>");
}

/// B14.
#[rstest]
#[case(json!(1))]
#[case(json!("That"))]
#[tokio::test]
async fn a_pick_is_the_next_turn(#[case] choice: serde_json::Value) {
    let chat = Chat::open().await;
    let (mut page, _) = chat.page(HERE).await;
    page.says_text("message-1", "be silent").await;
    let question = page.sees("answered").await;
    assert_eq!(
        (&question["shown"]["text"], &question["shown"]["choices"]),
        (&json!("Which?"), &json!(["This", "That"]))
    );

    let pick = json!({"type": "choose", "id": "choice-01", "turn_id": question["turn_id"], "choice": choice});
    page.says(&pick).await;

    let turn = page.sees("answered").await;
    assert_ne!(turn["turn_id"], question["turn_id"]);
    assert_eq!((&turn["text"], &turn["shown"]["text"]), (&json!("That"), &json!("*That*")));
}

/// B14. A number that is typed picks too, and the question shows it.
#[tokio::test]
async fn a_pick_in_words_is_the_next_turn() {
    let chat = Chat::open().await;
    let (mut page, _) = chat.page(HERE).await;
    page.says_text("message-1", "be silent").await;
    let question = page.sees("answered").await;

    page.says_text("message-2", "2").await;

    let closed = page.until_turn(|turn| turn.get("picked").is_some()).await;
    assert_eq!((&closed["turn_id"], &closed["picked"]), (&question["turn_id"], &json!("That")));
    let (_, welcome) = chat.page(HERE).await;
    assert_eq!(welcome["turns"][1]["text"], "That");
}

/// B14. Also with two windows, and after a reconnect.
#[tokio::test]
async fn a_question_is_answered_by_the_first_pick() {
    let chat = Chat::open().await;
    let (mut here, _) = chat.page(HERE).await;
    let (mut there, _) = chat.page(HERE).await;
    here.says_text("message-1", "be silent").await;
    let question = here.sees("answered").await;
    assert_eq!(question.get("picked"), None);
    let pick =
        |id: &str, choice: u8| json!({"type": "choose", "id": id, "turn_id": question["turn_id"], "choice": choice});

    here.says(&pick("choice-01", 1)).await;
    let closed = there.until_turn(|turn| turn.get("picked").is_some()).await;
    there.says(&pick("choice-02", 0)).await;

    assert_eq!((&closed["turn_id"], &closed["picked"]), (&question["turn_id"], &json!("That")));
    assert_eq!(there.hears("accepted").await, json!({"type": "accepted", "id": "choice-02", "turn_id": null}));
    here.until_turn(|turn| turn["shown"]["text"] == "*That*").await;
    let (_, welcome) = chat.page(HERE).await;
    let turns = welcome["turns"].as_array().expect("turns");
    assert_eq!(turns.iter().map(|turn| &turn["picked"]).collect::<Vec<_>>(), [&json!("That"), &json!(null)]);
    chat.stop().await;
}

#[rstest]
#[case(HERE, json!(2), "unknown_choice")]
#[case(HERE, json!("Neither"), "unknown_choice")]
#[case(ELSEWHERE, json!(0), "unknown_turn")]
#[tokio::test]
async fn only_what_was_asked_can_be_picked(
    #[case] conversation: &str,
    #[case] choice: serde_json::Value,
    #[case] code: &str,
) {
    let chat = Chat::open().await;
    let (mut page, _) = chat.page(HERE).await;
    page.says_text("message-1", "be silent").await;
    let question = page.sees("answered").await;

    let (mut page, _) = chat.page(conversation).await;
    page.says(&json!({"type": "choose", "id": "choice-01", "turn_id": question["turn_id"], "choice": choice})).await;

    assert_eq!(page.hears("error").await["code"], code);
}

/// A press that was made before the turn asked again does not answer the later question.
#[tokio::test]
async fn a_pick_answers_only_the_question_that_it_names() {
    let chat = Chat::open().await;
    let (mut page, _) = chat.page(HERE).await;
    page.says_text("message-1", "be silent").await;
    let question = page.sees("answered").await;
    let pick = |id: &str, asked: &serde_json::Value| json!({"type": "choose", "id": id, "turn_id": question["turn_id"], "choice": 1, "asked": asked});

    page.says(&pick("choice-01", &json!("2026-01-01T00:00:00.000Z"))).await;
    assert_eq!(page.hears("error").await["code"], "expired");
    page.says(&pick("choice-02", &question["shown"]["at"])).await;

    assert_eq!(page.sees("answered").await["text"], "That");
}

/// E3. The page is informed and not asked to retry; the next message is answered.
#[tokio::test]
async fn a_message_that_the_store_refuses_costs_itself_only() {
    let chat = Chat::rejecting().await;
    let (mut page, _) = chat.page(HERE).await;

    page.says_text("message-1", "poison").await;
    let refused = page.hears("error").await;
    page.says_text("message-2", "hello").await;

    assert_eq!(
        (&refused["id"], &refused["code"], &refused["retry"]),
        (&json!("message-1"), &json!("refused"), &json!(false))
    );
    assert_eq!(page.sees("answered").await["shown"]["text"], "*hello*");
}

/// B11.
#[tokio::test]
async fn nobody_hears_another_conversation() {
    let chat = Chat::open().await;
    let (mut other, _) = chat.page(ELSEWHERE).await;
    let (mut page, _) = chat.page(HERE).await;

    page.says_text("message-1", "write slowly").await;
    page.hears("draft").await;
    chat.release_agent();
    let turn = page.sees("answered").await;

    other.says(&json!({"type": "older", "before": turn["turn_id"]})).await;
    let next = other.next().await;
    assert_eq!(next, Ok(json!({"type": "history", "turns": [], "more": false})));
}

#[tokio::test]
async fn a_conversation_that_is_open_twice_is_the_same_in_both() {
    let chat = Chat::open().await;
    let (mut here, _) = chat.page(HERE).await;
    let (mut there, _) = chat.page(HERE).await;

    here.says_text("message-1", "wait").await;
    let turn = there.sees("accepted").await;
    chat.release_agent();

    assert_eq!(turn["text"], "wait");
    assert_eq!(here.sees("answered").await, there.sees("answered").await);
}

/// A holder of the id may delete it, from any socket; a frame that comes again deletes once.
#[tokio::test]
async fn a_conversation_is_deleted_and_what_runs_in_it_stops() {
    let chat = Chat::open().await;
    let (mut there, _) = chat.page(ELSEWHERE).await;
    let (mut page, _) = chat.page(HERE).await;
    page.says_text("message-1", "wait").await;
    page.hears("accepted").await;
    let delete = |id: &str, conversation: &str| json!({"type": "delete", "id": id, "conversation": conversation});

    there.says(&delete("deletion-1", HERE)).await;
    let accepted = there.hears("accepted").await;
    there.says(&delete("deletion-1", HERE)).await;

    assert_eq!(there.hears("accepted").await, accepted);
    let stopped = page.sees("cancelled").await;
    assert_eq!(stopped["text"], "wait");
    let deleted = page.sees("answered").await;
    assert_eq!((&deleted["text"], &deleted["turn_id"]), (&json!("/session delete all"), &accepted["turn_id"]));
    there.says(&delete("deletion-2", "a-conversation-of-nobody")).await;
    assert_eq!(there.hears("accepted").await["turn_id"], json!(null));
    for (id, conversation, code) in [("deletion-3", "short", "bad_conversation"), ("short", HERE, "bad_id")] {
        there.says(&delete(id, conversation)).await;
        let refused = there.hears("error").await;
        assert_eq!((&refused["id"], &refused["code"]), (&json!(id), &json!(code)));
    }
}

/// No frame of that size waits to be written: the socket reads it from the store.
#[tokio::test]
async fn a_large_answer_is_read_from_the_store() {
    let chat = Chat::open().await;
    let (mut page, _) = chat.page(HERE).await;

    page.says_text("message-1", "say a lot").await;

    let turn = page.hears("sync").await["turns"][0].take();
    assert_eq!((&turn["text"], &turn["status"]), (&json!("say a lot"), &json!("answered")));
}

/// D18.
#[tokio::test]
async fn what_runs_can_be_stopped() {
    let chat = Chat::open().await;
    let (mut page, _) = chat.page(HERE).await;
    page.says_text("message-1", "wait").await;
    let accepted = page.hears("accepted").await;

    page.says(&json!({"type": "stop"})).await;

    let stopped = page.sees("cancelled").await;
    assert_eq!(stopped["turn_id"], accepted["turn_id"]);
}

#[tokio::test]
async fn a_long_conversation_is_shown_from_its_end() {
    let chat = Chat::open().await;
    let (mut page, _) = chat.page(HERE).await;
    for number in 0..45 {
        page.says_text(&format!("message-{number}"), &number.to_string()).await;
        page.sees("answered").await;
    }

    let (mut page, welcome) = chat.page(HERE).await;
    page.says(&json!({"type": "older", "before": welcome["turns"][0]["turn_id"]})).await;
    let older = page.hears("history").await;

    let texts = |frame: &serde_json::Value| -> Vec<String> {
        let turns = frame["turns"].as_array().expect("turns");
        turns.iter().map(|turn| turn["text"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let numbers = |range: std::ops::Range<u32>| range.map(|number| number.to_string()).collect::<Vec<_>>();
    assert_eq!((texts(&older), &older["more"]), (numbers(0..5), &json!(false)));
    assert_eq!((texts(&welcome), &welcome["more"]), (numbers(5..45), &json!(true)));
}

#[rstest]
#[case(json!({"type": "message", "id": "message-1", "text": " "}), "empty")]
#[case(json!({"type": "message", "id": "message-1", "text": "\u{1}".repeat(64 * 1024 + 1)}), "too_long")]
#[case(json!({"type": "message", "id": "short", "text": "hello"}), "bad_id")]
#[case(json!({"type": "message", "text": "hello"}), "bad_frame")]
#[case(json!({"type": "sing"}), "bad_frame")]
#[case(json!({"type": "hello", "conversation": HERE}), "bad_frame")]
#[tokio::test]
async fn what_cannot_be_taken_in_is_said_and_the_socket_stays_open(
    #[case] frame: serde_json::Value,
    #[case] code: &str,
) {
    let chat = Chat::open().await;
    let (mut page, _) = chat.page(HERE).await;

    page.says(&frame).await;

    let error = page.hears("error").await;
    assert_eq!((&error["code"], &error["retry"]), (&json!(code), &json!(false)));
    page.says(&json!({"type": "ping"})).await;
    page.hears("pong").await;
}

#[rstest]
#[case(json!({"type": "message", "id": "message-1", "text": "hello"}), "hello_first", 4400)]
#[case(json!({"type": "hello", "conversation": "short"}), "bad_conversation", 4400)]
#[case(json!({"type": "hello", "conversation": HERE, "protocol": 2}), "unsupported_protocol", 4406)]
#[tokio::test]
async fn without_a_proper_hello_there_is_no_conversation(
    #[case] frame: serde_json::Value,
    #[case] code: &str,
    #[case] closed: u16,
) {
    let chat = Chat::open().await;
    let mut page = chat.open_socket().await;

    page.says(&frame).await;

    assert_eq!(page.hears("error").await["code"], code);
    assert_eq!(page.next().await, Err(closed));
}

#[rstest]
#[case(None, "token_required")]
#[case(Some("wrong"), "token_wrong")]
#[tokio::test]
async fn without_the_token_there_is_no_conversation(#[case] token: Option<&str>, #[case] code: &str) {
    let chat = Chat::with(Access::Token("right".into())).await;
    let mut page = chat.open_socket().await;

    page.says(&json!({"type": "hello", "conversation": HERE, "token": token})).await;

    assert_eq!(page.hears("error").await["code"], code);
    assert_eq!(page.next().await, Err(4401));
}

#[tokio::test]
async fn with_the_token_there_is() {
    let chat = Chat::with(Access::Token("right".into())).await;
    let mut page = chat.open_socket().await;

    page.says(&json!({"type": "hello", "conversation": HERE, "token": "right"})).await;

    assert_eq!(page.hears("welcome").await["greeting"], "Hello.");
}

#[rstest]
#[case(&[("origin", "https://evil.example")])]
#[case(&[("origin", "null")])]
#[case(&[("host", "evil.example")])]
#[case(&[("host", "evil.example"), ("origin", "http://evil.example")])]
#[tokio::test]
async fn a_page_elsewhere_opens_no_socket(#[case] headers: &[(&'static str, &str)]) {
    let chat = Chat::open().await;

    let refused = chat.connect(headers).await.err();

    let Some(tungstenite::Error::Http(response)) = refused else { panic!("{refused:?}") };
    assert_eq!(response.status(), 403);
}

/// D1.
#[tokio::test]
async fn a_chat_that_ends_says_so_and_pages_come_back_later() {
    let chat = Chat::open().await;
    let (mut page, _) = chat.page(HERE).await;

    chat.stop().await;

    assert_eq!(page.next().await, Err(1001));
    let mut page = chat.open_socket().await;
    let error = page.hears("error").await;
    assert_eq!((&error["code"], &error["retry"]), (&json!("unavailable"), &json!(true)));
    assert_eq!(page.next().await, Err(1013));
}

/// What is no language is ignored.
#[tokio::test]
async fn the_gateway_speaks_the_language_of_the_page() {
    let chat = Chat::open().await;
    let said = async |conversation: &str, language: &str| {
        let mut page = chat.open_socket().await;
        page.says(&json!({"type": "hello", "conversation": conversation, "language": language})).await;
        page.hears("welcome").await;
        page.says_text("message-1", "be silent").await;
        page.sees("answered").await["shown"]["text"].as_str().expect("a text").to_owned()
    };

    assert_eq!(said("german-conversation-0", "de-AT").await, "Was davon?");
    assert_eq!(said("strange-conversation-", "<b>").await, "Which?");
    chat.stop().await;
}

/// On each device of a person, and for nobody else.
#[tokio::test]
async fn a_persons_conversations_are_the_same_on_each_device() {
    let chat = Chat::of_people().await;
    let (phone, desktop, bobs) = (chat.visit("ada").await, chat.visit("ada").await, chat.visit("bob").await);
    let (mut page, welcome) = chat.page_of(&phone, HERE).await;
    assert_eq!(welcome["account"], json!({"id": "ada", "name": "Ada", "by_proxy": false, "conversations": []}));

    page.says_text("message-1", "hello").await;
    page.sees("answered").await;

    let (mut other, welcome) = chat.page_of(&desktop, HERE).await;
    let listed = &welcome["account"]["conversations"][0];
    assert_eq!((&listed["id"], &listed["first"]), (&json!(HERE), &json!("hello")));
    assert_eq!(welcome["turns"][0]["text"], "hello");
    let (_, of_bob) = chat.page_of(&bobs, HERE).await;
    assert_eq!((&of_bob["turns"], &of_bob["account"]["conversations"]), (&json!([]), &json!([])));

    other.says_text("message-2", "from here").await;
    page.until_turn(|turn| turn["text"] == "from here" && turn["status"] == "answered").await;
    other.sees("answered").await;

    other.says(&json!({"type": "delete", "id": "delete-01", "conversation": HERE})).await;
    other.until_turn(|turn| turn["text"] == "/session delete all" && turn["status"] == "answered").await;
    page.says(&json!({"type": "list"})).await;
    assert_eq!(page.hears("conversations").await["conversations"], json!([]));
}

#[rstest]
#[case::without_a_cookie(None)]
#[case::with_one_that_is_not_known(Some("rejoinder_visit_main=guess"))]
#[tokio::test]
async fn who_is_not_signed_in_is_asked_to(#[case] cookie: Option<&str>) {
    let chat = Chat::of_people().await;
    let headers: Vec<_> = cookie.map(|cookie| ("cookie", cookie)).into_iter().collect();
    let mut page = chat.connect(&headers).await.expect("an open socket");

    page.says(&json!({"type": "hello", "conversation": HERE})).await;

    assert_eq!(page.next().await.map(|frame| frame["code"].clone()), Ok(json!("sign_in_required")));
    assert_eq!(page.next().await, Err(4401));
}

/// The visit is over, or the person is not known any more.
#[tokio::test]
async fn who_is_signed_out_says_nothing_more() {
    let chat = Chat::of_people().await;
    let cookie = chat.visit("ada").await;
    let (mut page, _) = chat.page_of(&cookie, HERE).await;

    chat.forget("ada").await;
    page.says_text("message-1", "hello").await;

    assert_eq!(page.hears("error").await["code"], "sign_in_required");
    let mut again = chat.connect(&[("cookie", &cookie)]).await.expect("an open socket");
    again.says(&json!({"type": "hello", "conversation": HERE})).await;
    assert_eq!(again.hears("error").await["code"], "sign_in_required");
}

/// Not even before the page notices it.
#[tokio::test]
async fn a_page_whose_visit_is_over_does_nothing_more() {
    let chat = Chat::of_people().await;
    let cookie = chat.visit("ada").await;
    let (mut page, _) = chat.page_of(&cookie, HERE).await;
    page.says_text("message-1", "hello").await;
    let turn = page.sees("answered").await["turn_id"].take();

    chat.sign_out("ada").await;

    let frames = [
        json!({"type": "message", "id": "message-2", "text": "hello again"}),
        json!({"type": "older", "before": turn}),
        json!({"type": "search", "id": "search-1", "text": "hello", "conversations": [HERE]}),
        json!({"type": "list"}),
        json!({"type": "subscribe", "id": "on", "endpoint": "https://push.example", "key": "", "auth": ""}),
        json!({"type": "delete", "id": "delete-01", "conversation": HERE}),
    ];
    for frame in frames {
        page.says(&frame).await;
        assert_eq!(page.hears("error").await["code"], "sign_in_required", "{frame}");
    }
    let (_, welcome) = chat.page_of(&chat.visit("ada").await, HERE).await;
    assert_eq!(welcome["turns"].as_array().map(Vec::len), Some(1));
}

/// A message with files takes a while to arrive.
#[tokio::test]
async fn who_is_signed_out_before_their_message_has_arrived_does_not_send_it() {
    let chat = Chat::of_people().await;
    let cookie = chat.visit("ada").await;
    let part =
        |name: &str, value: &str| format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    let parts = [part("conversation", HERE), part("id", "message-1"), part("text", "hello")].concat();
    let body = format!("{parts}--b--\r\n");
    let head = format!(
        "POST /chat/messages HTTP/1.1\r\nhost: {}\r\ncookie: {cookie}\r\nexpect: 100-continue\r\nconnection: close\r\n\
         content-type: multipart/form-data; boundary=b\r\ncontent-length: {}\r\n\r\n",
        chat.address,
        body.len()
    );
    let mut stream = TcpStream::connect(chat.address).await.expect("a connection");
    stream.write_all(head.as_bytes()).await.expect("it is sent");
    // The gateway knows who sends it, and wants the body.
    let mut wanted = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    stream.read_exact(&mut wanted).await.expect("the body is wanted");
    assert!(wanted.starts_with(b"HTTP/1.1 100"), "{wanted:?}");

    chat.sign_out("ada").await;
    stream.write_all(body.as_bytes()).await.expect("it is sent");

    let mut response = String::new();
    stream.read_to_string(&mut response).await.expect("a response");
    assert!(response.starts_with("HTTP/1.1 401"), "{response}");
}

/// The operator names it. Others are refused, as they were.
#[tokio::test]
async fn a_named_page_of_another_origin_uses_the_socket() {
    let chat = Chat::open().await;

    assert!(chat.connect(&[("origin", "https://home.example.org")]).await.is_ok());
    assert!(chat.connect(&[("origin", "https://evil.example.org")]).await.is_err());
}
