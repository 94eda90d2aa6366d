//! Operators have the gateway speak first: on the command line, over HTTP and in the configuration.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    people::Door,
    support::{json_of, problem},
};

/// J1. The command ends when the platform has acknowledged it.
#[tokio::test]
async fn the_command_line_sends_a_message() {
    let door = Door::start().await;
    let ada = door.telegram.person("Ada");
    let code = door.code_of(&ada).await;
    door.approve(&code, json!({ "name": "Ada" })).await;
    let to = format!("telegram.main/{}", ada.chat());
    let folder = door.gateway.data.path();
    std::fs::write(folder.join("report.txt"), "all is well").unwrap();

    let (sent, told) = door.run(&["send", &to, "The **report** is ready."]).await;
    assert_eq!((sent, told), (Some(0), format!("Sent to {to}.\n")));
    ada.hears("The report is ready.").await;
    let (sent, told) = door.run(&["send", "Ada", "--file", "report.txt", "--key", "k1"]).await;
    assert_eq!((sent, told), (Some(0), format!("Sent to {to}.\n")));
    ada.finds("the file", |message| message.ours && message.media.as_deref() == Some("document")).await;
    let (again, _) = door.run(&["send", "Ada", "--file", "report.txt", "--key", "k1"]).await;
    assert_eq!(again, Some(0));
    let (role, told) = door.run(&["send", "role:member", "For all."]).await;
    assert_eq!((role, told), (Some(0), format!("Sent to {to}.\n")));

    let (nobody, told) = door.run(&["send", "Eve", "hello"]).await;
    assert_eq!(nobody, Some(1));
    assert!(told.contains("nobody who is known is Eve"), "{told}");
    let (wrong, told) = door.run(&["send", "telegram/42", "hello"]).await;
    assert!(wrong == Some(1) && told.contains("`to` must be a conversation"), "{told}");
    ada.blocks();
    let (refused, told) = door.run(&["send", &to, "Are you there?"]).await;
    assert_eq!(refused, Some(1));
    assert!(told.contains("Not delivered to") && told.contains("rejoinder turns explain"), "{told}");
}

/// What was sent is one turn for each conversation, and its URL tells what became of it.
#[tokio::test]
async fn a_message_has_a_url_that_tells_what_became_of_it() {
    let door = Door::start().await;
    let ada = door.telegram.person("Ada");
    let code = door.code_of(&ada).await;
    door.approve(&code, json!({ "name": "Ada" })).await;

    let sent = door.post("messages", json!({ "to": "Ada", "text": "hello" })).await;
    assert_eq!(sent.status(), StatusCode::ACCEPTED);
    let location = sent.headers()["location"].to_str().unwrap().to_owned();
    let sent = json_of(sent).await;
    assert_eq!(sent["url"], json!(location));
    assert_eq!(sent["messages"][0]["to"], format!("telegram.main/{}", ada.chat()));
    ada.hears("hello").await;
    let turn =
        json_of(door.gateway.get(&location).bearer_auth(crate::support::ADMIN_TOKEN).send().await.unwrap()).await;
    assert_eq!(turn["turn_id"], sent["id"]);

    let wrong = |body: Value| async { problem(door.post("messages", body).await, StatusCode::BAD_REQUEST).await };
    for (body, what) in [
        (json!({ "to": "Ada", "text": " " }), "`text`"),
        (json!({ "text": "hello" }), "either `to`"),
        (json!({ "to": "Ada", "attachments": [{ "name": "a", "data": "%" }] }), "Base64"),
        (json!({ "to": "Ada", "attachments": [{ "name": "a", "url": "http://a.example/x" }] }), "https"),
        (json!({ "to": "Ada", "text": "hello", "files": [] }), "files"),
    ] {
        let told = wrong(body).await;
        assert!(told.contains(what), "{told}");
    }
}

#[tokio::test]
async fn the_files_of_a_message_are_limited() {
    let door = Door::with("[files]\nmax = \"600 KiB\"\nper_message = 2\n").await;
    let ada = door.telegram.person("Ada");
    let code = door.code_of(&ada).await;
    door.approve(&code, json!({ "name": "Ada" })).await;
    let send = |sizes: [usize; 2]| {
        let files = sizes.map(|size| json!({ "name": "a.bin", "data": "AAAA".repeat(size / 3) }));
        door.post("messages", json!({ "to": "Ada", "attachments": files }))
    };

    let fitting = send([300 << 10, 300 << 10]).await;
    assert_eq!(fitting.status(), StatusCode::ACCEPTED);
    ada.finds("the files", |message| message.ours && message.media.as_deref() == Some("document")).await;
    let files = problem(send([300 << 10, 301 << 10]).await, StatusCode::BAD_REQUEST).await;
    assert!(files.contains("the files may have 614400 bytes together"), "{files}");
    let many = json!({ "to": "Ada", "attachments": vec![json!({ "name": "a", "data": "AAAA" }); 3] });
    let many = problem(door.post("messages", many).await, StatusCode::BAD_REQUEST).await;
    assert!(many.contains("`attachments` may have 2 files"), "{many}");
    let body = problem(send([600 << 10, 600 << 10]).await, StatusCode::BAD_REQUEST).await;
    assert!(body.contains("must have at most"), "{body}");
}

#[tokio::test]
async fn the_command_line_makes_schedules() {
    let door = Door::start().await;
    let ada = door.telegram.person("Ada");
    let code = door.code_of(&ada).await;
    door.approve(&code, json!({ "name": "Ada" })).await;

    let (_, none) = door.run(&["schedule", "list"]).await;
    assert!(none.starts_with("There are no schedules."), "{none}");
    let add = ["schedule", "add", "--to", "Ada", "--message", "It is time.", "--in", "1s", "--name", "soon"];
    let (made, told) = door.run(&add).await;
    assert_eq!(made, Some(0), "{told}");
    ada.hears("It is time.").await;

    let prompt = ["--prompt", "What is on?", "--cron", "0 8 * * MON-FRI", "--time-zone", "Europe/Vienna"];
    let add = [&["schedule", "add", "--to", "Ada", "--name", "morning"], &prompt[..]].concat();
    let (made, told) = door.run(&add).await;
    assert_eq!(made, Some(0), "{told}");
    let (taken, told) = door.run(&add).await;
    assert!(taken == Some(1) && told.contains("there is a schedule `morning`"), "{told}");
    let (_, listed) = door.run(&["schedule", "list"]).await;
    assert!(listed.contains("0 8 * * MON-FRI (Europe/Vienna)") && listed.contains("done"), "{listed}");
    let (_, told) = door.run(&["schedule", "run", "morning"]).await;
    assert!(told.starts_with("Begun: telegram.main/"), "{told}");
    ada.hears("you said: What is on?").await;
    let (_, shown) = door.run(&["schedule", "show", "morning"]).await;
    assert!(shown.contains("made by admin (operator)") && shown.contains("TURNS"), "{shown}");
    for (command, told) in
        [("pause", "morning is paused."), ("resume", "morning goes on: next at "), ("remove", "morning is removed.")]
    {
        let (done, said) = door.run(&["schedule", command, "morning"]).await;
        assert!(done == Some(0) && said.starts_with(told), "{said}");
    }
    let (gone, told) = door.run(&["schedule", "show", "morning"]).await;
    assert!(gone == Some(1) && told.contains("there is no schedule with this name"), "{told}");
    let actions: Vec<_> = door.items("audit").await.iter().map(|entry| entry["action"].clone()).collect();
    assert_eq!(actions[..4], ["unschedule", "resume_schedule", "pause_schedule", "run_schedule"]);
}

/// Bad input says what to fix.
#[tokio::test]
async fn what_is_no_schedule_is_refused() {
    let door = Door::start().await;
    let hello = json!({ "to": "telegram.main/42", "message": "hello" });
    let with = |more: Value| {
        let mut body = hello.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    for (body, what) in [
        (hello.clone(), "one of `at`"),
        (with(json!({ "at": "2001-01-01T00:00:00Z" })), "future"),
        (with(json!({ "at": "tomorrow" })), "`at` must be a time"),
        (with(json!({ "every": "5s" })), "from a minute"),
        (with(json!({ "cron": "every day" })), "five fields"),
        (with(json!({ "cron": "0 8 * * *", "time_zone": "Mars/Olympus" })), "Mars/Olympus"),
        (with(json!({ "every": "1h", "quiet": true })), "`prompt`"),
        (with(json!({ "every": "1h", "prompt": "and this" })), "one of `message`"),
        (with(json!({ "every": "1h", "digest": true })), "one of `message`"),
        (json!({ "every": "1h", "to": "ada", "digest": true, "quiet": true }), "are for a `prompt`"),
        (json!({ "every": "1h", "to": "telegram.main/42", "digest": true }), "for a person or a role"),
        (json!({ "every": "1h", "to": "/", "message": "hello" }), "`to`"),
    ] {
        let told = problem(door.post("schedules", body).await, StatusCode::BAD_REQUEST).await;
        assert!(told.contains(what), "{told}");
    }
    let nowhere = json!({ "every": "1h", "to": "fax.main/42", "message": "hello" });
    let told = problem(door.post("schedules", nowhere).await, StatusCode::CONFLICT).await;
    assert!(told.contains("not configured"), "{told}");
    assert!(door.items("schedules").await.is_empty());
}
