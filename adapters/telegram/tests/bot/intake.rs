//! Events from people, and what the agent is given.

use rejoinder_core::ChannelAdapter;
use rejoinder_telegram_double::{ApiError, Call, Fault, Outage, TelegramDouble};
use serde_json::{Value, json};

use crate::support::{Gateway, bot, http, options};

#[tokio::test]
async fn a_message_is_answered_and_confirmed() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;

    ada.says("hello");

    ada.hears("You said: hello").await;
    telegram.all_confirmed().await;
    assert!(gateway.adapter.health().problem.is_none());
    gateway.stop().await;
}

/// E3: an update that the store refuses does not block the others in its batch.
#[tokio::test]
async fn an_update_that_the_store_refuses_costs_itself_only() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    for text in ["say poison", "say one", "say two"] {
        ada.says(text);
    }

    let gateway = Gateway::rejecting(bot(options(&telegram))).await;

    ada.hears("two").await;
    telegram.all_confirmed().await;
    assert_eq!(telegram.bot_texts(ada.id()), ["one", "two"]);
    gateway.until_health("there is no problem", |health| health.problem.is_none()).await;
    gateway.stop().await;
}

/// E3: an update whose number cannot be read is skipped. The others of its batch are answered once, and the numbers go on.
#[tokio::test]
async fn an_update_without_a_number_moves_the_cursor_nowhere() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;
    ada.says("say one");
    ada.hears("one").await;
    telegram.all_confirmed().await;

    telegram.raw_update(&json!({"update_id": "odd", "message": {}}));
    telegram.until_called("getUpdates", telegram.calls("getUpdates").len() + 2).await;
    ada.says("say two");

    ada.hears("two").await;
    telegram.all_confirmed().await;
    let offset = |call: &Call| call.params["offset"].as_i64();
    let offsets: Vec<_> = telegram.calls("getUpdates").iter().filter_map(offset).collect();
    assert!(offsets.is_sorted(), "{offsets:?}");
    assert_eq!(telegram.bot_texts(ada.id()), ["one", "two"]);
    gateway.stop().await;
}

#[tokio::test]
async fn the_gateways_commands_are_listed() {
    let telegram = TelegramDouble::start().await;
    let gateway = Gateway::start(&telegram).await;

    let listed = telegram.until("the commands are listed", |view| Some(view.commands()).filter(|it| !it.is_empty()));

    let names: Vec<String> = listed.await.into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "start", "help", "new", "session", "retry", "undo", "stop", "status", "budget", "agent", "model", "queue",
            "voice", "history", "export", "whoami", "link", "unlink", "home", "language"
        ]
    );
    gateway.stop().await;
}

/// B11.
#[tokio::test]
async fn in_a_group_a_mention_is_answered_with_a_link_to_it() {
    let telegram = TelegramDouble::start().await;
    let friends = telegram.supergroup("Friends");
    let ada = telegram.person("Ada").at(&friends);
    let gateway = Gateway::start(&telegram).await;

    let asked = ada.says(&format!("@{} say yes", telegram.bot().username));

    assert_eq!(ada.hears("yes").await.reply_to, Some(asked));
    gateway.stop().await;
}

/// B5: group messages that are not directed at us reach the agent and are owed nothing.
#[tokio::test]
async fn talk_of_the_group_is_owed_nothing() {
    let telegram = TelegramDouble::start().await;
    telegram.privacy(false);
    let friends = telegram.supergroup("Friends");
    let ada = telegram.person("Ada").at(&friends);
    let gateway = Gateway::start(&telegram).await;

    ada.says("stay out of it");

    gateway.until_agent_has(1).await;
    gateway.until_settled().await;
    assert_eq!(telegram.bot_texts(friends.id()), Vec::<String>::new());
    gateway.stop().await;
}

/// L2.
#[tokio::test]
async fn a_topic_is_answered_in_the_topic() {
    let telegram = TelegramDouble::start().await;
    let forum = telegram.forum("Family");
    let trips = forum.topic("Trips");
    let ada = telegram.person("Ada").at(&forum).topic(trips);
    let gateway = Gateway::start(&telegram).await;

    ada.says(&format!("@{} say Rome", telegram.bot().username));

    assert_eq!(ada.hears("Rome").await.thread, Some(trips));
    assert_eq!(gateway.until_agent_has(1).await.place.conversation.thread.as_deref(), Some(trips.to_string().as_str()));
    gateway.stop().await;
}

#[tokio::test]
async fn a_reply_to_us_is_for_us_and_says_what_it_is_to() {
    let telegram = TelegramDouble::start().await;
    let friends = telegram.supergroup("Friends");
    let ada = telegram.person("Ada").at(&friends);
    let gateway = Gateway::start(&telegram).await;
    ada.says(&format!("@{} say yes", telegram.bot().username));
    let said = ada.hears("yes").await;

    ada.replies(said.id, "say why");

    ada.hears("why").await;
    assert_eq!(gateway.until_agent_has(2).await.message.quoted.expect("a quote").text, "yes");
    gateway.stop().await;
}

#[tokio::test]
async fn a_command_with_our_name_is_the_command() {
    let telegram = TelegramDouble::start().await;
    let friends = telegram.supergroup("Friends");
    let ada = telegram.person("Ada").at(&friends);
    let gateway = Gateway::start(&telegram).await;

    ada.says(&format!("/stop@{}", telegram.bot().username));

    ada.hears("Nothing to stop.").await;
    gateway.stop().await;
}

/// An edit replaces the text of a waiting message; the agent never sees the old text.
#[tokio::test]
async fn an_edit_changes_what_waits() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;
    ada.says("begin one");
    gateway.until_agent_has(1).await;
    let second = ada.says("say tow");

    ada.edits(second, "say two");
    telegram.all_confirmed().await;
    gateway.release_agent();

    ada.hears("two").await;
    assert_eq!(gateway.until_agent_has(2).await.message.text, "say two");
    gateway.stop().await;
}

/// K3.
#[tokio::test]
async fn an_album_is_one_turn_with_all_its_files() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;

    let photos = [&b"\xff\xd8\xffone"[..], b"\xff\xd8\xfftwo", b"\xff\xd8\xffthree"];
    ada.sends_album(&photos, "say nice");

    ada.hears("nice").await;
    let turn = gateway.until_agent_has(1).await;
    let bytes: Vec<_> = turn.message.attachments.iter().map(|file| file.bytes.as_deref()).collect();
    assert_eq!(bytes, photos.map(Some));
    assert_eq!(gateway.turns().len(), 1);
    gateway.stop().await;
}

#[tokio::test]
async fn a_file_that_cannot_be_fetched_leaves_the_words() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;
    telegram.fault(Fault::error_before(500).on("file"));

    ada.sends_photo(b"a cat", "say meow");

    ada.hears("meow").await;
    let files = gateway.until_agent_has(1).await.message.attachments;
    assert_eq!(files.iter().map(|file| file.bytes.is_some()).collect::<Vec<_>>(), [false]);
    gateway.stop().await;
}

/// E4: unknown and malformed updates block nothing.
#[tokio::test]
async fn updates_that_make_no_sense_are_let_pass() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;
    telegram.all_confirmed().await;

    assert!(telegram.update("my_chat_member", &json!({"of": "another year"})));
    assert!(telegram.update("message", &json!({"message_id": "eleven", "chat": {"id": "?"}})));
    ada.says("say still here");

    ada.hears("still here").await;
    telegram.all_confirmed().await;
    gateway.stop().await;
}

/// E1, E3: a poll whose response is lost returns the same updates again.
#[tokio::test]
async fn an_update_that_comes_twice_is_answered_once() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    telegram.fault(Fault::lost_answer().on("getUpdates").times(2));
    ada.says("say once");

    let gateway = Gateway::start(&telegram).await;

    ada.hears("once").await;
    telegram.all_confirmed().await;
    gateway.until_settled().await;
    assert_eq!(telegram.bot_texts(ada.id()), ["once"]);
    gateway.stop().await;
}

/// E1: the cursor survives a restart.
#[tokio::test]
async fn after_a_restart_it_goes_on_where_it_was() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;
    ada.says("say one");
    ada.hears("one").await;
    gateway.until_settled().await;

    let gateway = gateway.restart(&telegram).await;
    ada.says("say two");

    ada.hears("two").await;
    gateway.until_settled().await;
    assert_eq!(telegram.bot_texts(ada.id()), ["one", "two"]);
    let first = &telegram.calls("getUpdates").into_iter().rfind(|call| call.params["timeout"] == 0).expect("a poll");
    assert!(first.params["offset"].is_i64(), "{first:?}");
    gateway.stop().await;
}

/// F2.
#[tokio::test]
async fn a_second_poller_is_named_and_survived() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;
    gateway.until_health("it polls", |health| health.inbound_at.is_some()).await;
    telegram.fault(Fault::refuse(ApiError::conflict("terminated by other getUpdates request")).on("getUpdates"));

    let health = gateway.until_health("the conflict is reported", |health| health.problem.is_some()).await;
    assert!(health.problem.expect("a problem").contains("another program polls"));
    ada.says("say I am back");

    ada.hears("I am back").await;
    gateway.until_health("the problem is gone", |health| health.problem.is_none()).await;
    gateway.stop().await;
}

#[tokio::test]
async fn a_webhook_that_something_else_set_is_removed() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;
    gateway.until_health("it polls", |health| health.inbound_at.is_some()).await;

    let set = format!("{}/bot{}/setWebhook?url=http://127.0.0.1:9/", telegram.url(), telegram.token());
    http().get(set).send().await.expect("an answer");
    ada.says("say here");

    ada.hears("here").await;
    let info = format!("{}/bot{}/getWebhookInfo", telegram.url(), telegram.token());
    let info: Value = http().get(info).send().await.expect("an answer").json().await.expect("JSON");
    assert_eq!(info["result"]["url"], "");
    gateway.stop().await;
}

/// F1.
#[tokio::test]
async fn a_poll_that_stalls_is_given_up() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    telegram.fault(Fault::stall().on("getUpdates"));
    let gateway = Gateway::start(&telegram).await;

    ada.says("say at last");

    ada.hears("at last").await;
    gateway.stop().await;
}

#[tokio::test]
async fn an_outage_is_named_and_survived() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;
    ada.says("begin it");
    gateway.until_agent_has(1).await;

    telegram.start_outage(Outage::Refuse);
    gateway.release_agent();
    gateway.until_health("the problem is reported", |health| health.problem.is_some()).await;
    telegram.end_outage();

    ada.finds("the answer", |message| message.ours && message.text.contains("that is all")).await;
    gateway.until_health("the problem is gone", |health| health.problem.is_none()).await;
    gateway.stop().await;
}

#[tokio::test]
async fn a_token_that_is_refused_is_named() {
    let telegram = TelegramDouble::start().await;
    telegram.fault(Fault::refuse(ApiError::new(401, "Unauthorized")).on("getMe"));
    let gateway = Gateway::start(&telegram).await;

    let health = gateway.until_health("the problem is reported", |health| health.problem.is_some()).await;

    let problem = health.problem.expect("a problem");
    assert!(problem.contains("token") && !problem.contains(telegram.token()), "{problem}");
    gateway.until_health("the problem is gone", |health| health.problem.is_none() && health.inbound_at.is_some()).await;
    gateway.stop().await;
}

#[tokio::test]
async fn a_choice_is_a_turn_and_its_button_is_answered() {
    let telegram = TelegramDouble::start().await;
    let friends = telegram.supergroup("Friends");
    let ada = telegram.person("Ada").at(&friends);
    let gateway = Gateway::start(&telegram).await;
    ada.says(&format!("@{} stay silent", telegram.bot().username));
    let question = ada.hears("Which of these?").await;

    let query = ada.presses(question.id, 1);

    ada.hears("less").await;
    telegram.until("the button is acknowledged", |view| view.callback_answer(&query)).await;
    assert_eq!(gateway.until_agent_has(2).await.message.text, "say less");
    gateway.stop().await;
}

/// The first pick by the person who was asked closes a question: it shows the choice and loses its buttons.
#[tokio::test]
async fn a_question_is_closed_by_its_first_pick() {
    let telegram = TelegramDouble::start().await;
    let friends = telegram.supergroup("Friends");
    let (ada, bob) = (telegram.person("Ada").at(&friends), telegram.person("Bob").at(&friends));
    let gateway = Gateway::start(&telegram).await;
    ada.says(&format!("@{} stay silent", telegram.bot().username));
    let question = ada.hears("Which of these?").await;
    // Closing fails the first time; the next press closes the question.
    telegram.fault(Fault::error_before(502).on("editMessageText").times(1));

    let others = bob.presses(question.id, 0);
    telegram.until("the button is acknowledged", |view| view.callback_answer(&others)).await;
    let first = ada.presses(question.id, 1);
    telegram.until("the button is acknowledged", |view| view.callback_answer(&first)).await;
    ada.hears("less").await;
    assert_eq!(telegram.inspect(|view| view.message(friends.id(), question.id).map(|it| it.buttons.len())), Some(2));
    let again = ada.presses(question.id, 0);
    telegram.until("the button is acknowledged", |view| view.callback_answer(&again)).await;

    let closed = ada.finds("the closed one", |message| message.id == question.id && message.buttons.is_empty()).await;
    assert_eq!(closed.text, "Which of these?\n\n✓ say less");
    gateway.until_settled().await;
    let texts: Vec<_> = gateway.turns().into_iter().map(|turn| turn.message.text).collect();
    assert_eq!(texts, ["stay silent", "say less"]);
    gateway.stop().await;
}

#[tokio::test]
async fn the_agent_is_told_of_a_reaction_to_what_it_said() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;
    ada.says("say It will rain.");
    let said = ada.hears("It will rain.").await;
    gateway.until_settled().await;

    ada.reacts(said.id, "👍");

    let turn = gateway.until_agent_has(2).await;
    assert_eq!(
        (turn.message.reaction.as_deref(), &*turn.message.quoted.expect("a quote").text),
        (Some("👍"), "It will rain.")
    );
    ada.reacts(said.id, "");
    assert_eq!(gateway.until_agent_has(3).await.message.reaction.as_deref(), Some(""));
    gateway.stop().await;
}

/// Telegram does not say whose message it is: what was sent before the start is looked up, in its topic.
#[tokio::test]
async fn a_reaction_to_what_was_said_before_the_start_is_told() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;
    let asked = ada.says("say It will *rain*.");
    let said = ada.hears("It will rain.").await;
    gateway.until_settled().await;
    let gateway = gateway.restart(&telegram).await;

    ada.reacts(asked, "👎");
    ada.reacts(said.id, "👍");

    let turn = gateway.until_agent_has(1).await;
    assert_eq!(
        (turn.message.reaction.as_deref(), &*turn.message.quoted.expect("a quote").text),
        (Some("👍"), "It will rain.")
    );
    gateway.stop().await;
}

#[tokio::test]
async fn a_group_that_moves_is_answered_where_it_is_now() {
    let telegram = TelegramDouble::start().await;
    let friends = telegram.group("Friends");
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;
    ada.at(&friends).says(&format!("@{} begin it", telegram.bot().username));
    gateway.until_agent_has(1).await;

    let moved = telegram.migrate(&friends);
    gateway.release_agent();

    let answer = ada.at(&moved).finds("the answer", |message| message.ours && message.text.contains("all.")).await;
    assert!(answer.ours);
    gateway.stop().await;
}

/// O1.
#[tokio::test]
async fn another_bot_is_not_answered() {
    let telegram = TelegramDouble::start().await;
    telegram.privacy(false);
    let friends = telegram.supergroup("Friends");
    let other = telegram.other_bot("Other", "other_bot").at(&friends);
    let ada = telegram.person("Ada").at(&friends);
    let gateway = Gateway::start(&telegram).await;

    other.says(&format!("@{} say hello", telegram.bot().username));
    ada.says(&format!("@{} say it was I", telegram.bot().username));

    ada.hears("it was I").await;
    gateway.until_settled().await;
    let directed: Vec<_> = gateway.turns().into_iter().map(|turn| turn.message.text).collect();
    assert_eq!(directed, ["say it was I"]);
    gateway.stop().await;
}
