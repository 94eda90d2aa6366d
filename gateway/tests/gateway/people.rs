//! Who asks a Telegram bot to be let in, and what operators do about it: over HTTP and on the command line.

use std::process::Stdio;

use rejoinder_telegram_double::{Person, TelegramDouble};
use reqwest::{Response, StatusCode, header};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::{ADMIN_TOKEN, Echo, TestGateway, eventually, json_of, problem};

/// A gateway with a bot that gives strangers a code.
pub(crate) struct Door {
    pub(crate) gateway: TestGateway,
    pub(crate) telegram: TelegramDouble,
}

impl Door {
    pub(crate) async fn start() -> Self {
        Self::with("").await
    }

    /// Starts with more sections.
    pub(crate) async fn with(sections: &str) -> Self {
        let telegram = TelegramDouble::start().await;
        let (token, api) = (telegram.token(), telegram.url());
        let bot = format!("token = \"{token}\"\napi_url = \"{api}\"\npace = \"server\"\npoll_timeout = \"5s\"\n");
        let gateway =
            TestGateway::start_with(Echo::at_once(), &format!("[channels.telegram.main]\n{bot}{sections}")).await;
        Self { gateway, telegram }
    }

    async fn post_with(&self, token: &str, path: &str, body: Value) -> Response {
        let url = self.gateway.url(&format!("/admin/api/{path}"));
        self.gateway.http.post(url).bearer_auth(token).json(&body).send().await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Response {
        self.post_with(ADMIN_TOKEN, path, body).await
    }

    async fn items_for(&self, token: &str, path: &str) -> Vec<Value> {
        let response = self.gateway.get(&format!("/admin/api/{path}")).bearer_auth(token).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()[header::CACHE_CONTROL], "no-store");
        let list = json_of(response).await;
        assert!(list["next"].is_null(), "{list}");
        list["items"].as_array().unwrap().clone()
    }

    pub(crate) async fn items(&self, path: &str) -> Vec<Value> {
        self.items_for(ADMIN_TOKEN, path).await
    }

    /// Makes a token with this role, for these channels only.
    async fn token(&self, role: &str, channels: Option<&[&str]>) -> String {
        let made =
            self.post("tokens", json!({ "name": format!("the {role}"), "role": role, "channels": channels })).await;
        assert_eq!(made.status(), StatusCode::CREATED);
        json_of(made).await["token"].as_str().unwrap().to_owned()
    }

    /// Somebody writes for the first time: the request that the operator sees.
    async fn request_of(&self, person: &Person) -> Value {
        person.says("hello");
        let id = person.id().to_string();
        eventually("the request is listed", async || {
            self.items("pairings").await.into_iter().find(|item| item["id"] == id.as_str())
        })
        .await
    }

    /// The same: the code.
    pub(crate) async fn code_of(&self, person: &Person) -> String {
        self.request_of(person).await["code"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn approve(&self, code: &str, body: Value) -> Value {
        let response = self.post(&format!("pairings/{code}/approve"), body).await;
        assert_eq!(response.status(), StatusCode::OK);
        json_of(response).await
    }

    /// Runs a command beside the gateway; returns its exit code and what it printed.
    pub(crate) async fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let folder = self.gateway.data.path();
        let mut command = Command::new(env!("CARGO_BIN_EXE_rejoinder"));
        command.args(arguments).args(["--config", "rejoinder.toml"]).current_dir(folder).stdin(Stdio::null());
        command.env_clear().env("HOME", folder).env("REJOINDER_DATA", folder);
        let output = command.output().await.unwrap();
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    }
}

/// N1.
#[tokio::test]
async fn who_was_given_a_code_is_let_in_with_it() {
    let door = Door::start().await;
    let ada = door.telegram.person_called("Ada", "ada_l");
    let id = ada.id().to_string();

    let request = door.request_of(&ada).await;
    let code = request["code"].as_str().unwrap();
    ada.finds("the code", |message| message.ours && message.text.contains(code)).await;
    let person = door.approve(code, json!({ "name": " Ada L. ", "reason": "a friend" })).await;
    ada.says("hello again");
    ada.hears("you said: hello again").await;

    assert_eq!((code.len(), &code[4..5]), (9, "-"));
    assert_eq!((&request["channel"], &request["id"]), (&json!("telegram.main"), &json!(id)));
    assert_eq!((&request["name"], &request["username"]), (&json!("Ada"), &json!("ada_l")));
    assert_eq!(request["conversation"], format!("telegram.main/{}", ada.chat()));
    assert!(request["asked_at"].as_str() < request["expires_at"].as_str(), "{request}");
    assert_eq!((&person["name"], &person["role"]), (&json!("Ada L."), &json!("member")));
    let identity = &person["identities"][0];
    assert_eq!((&identity["channel"], &identity["id"]), (&json!("telegram.main"), &json!(id)));
    assert_eq!(identity["added_by"], "admin");
    assert_eq!(door.items("pairings").await, [] as [Value; 0]);
    assert_eq!(door.items("people").await, [person]);
    let audit = door.items("audit").await;
    assert_eq!((&audit[0]["action"], &audit[0]["reason"]), (&json!("approve"), &json!("a friend")));
}

/// By the operator's name, by those of the platform and by ids, in any case; what others sent them is theirs.
#[tokio::test]
async fn somebody_is_found_by_all_their_names() {
    let door = Door::start().await;
    let ada = door.telegram.person_called("Ädá", "ada_l");
    let (id, place) = (ada.id().to_string(), format!("telegram.main/{}", ada.id()));
    let code = door.code_of(&ada).await;
    door.approve(&code, json!({ "name": "Lovelace" })).await;
    ada.says("hello again");
    ada.hears("you said: hello again").await;

    let (sent, told) = door.run(&["send", "LOVELACE", "The report is ready."]).await;
    assert_eq!(sent, Some(0), "{told}");
    let (sent, told) = door.run(&["send", "@Ada_L", "So is the bill."]).await;
    assert_eq!(sent, Some(0), "{told}");
    for name in ["Lovelace", "lovelace", "LOVE", "@ADA_L", "ädá", &id, &place] {
        let listed = async |list: &str| {
            let items = door.items(&format!("{list}?person={name}")).await;
            items.iter().map(|item| item["text"].to_string()).collect::<Vec<_>>().join(" ")
        };
        for (list, words) in
            [("turns", "hello again"), ("turns", "bill"), ("deliveries", "you said"), ("deliveries", "bill")]
        {
            let found = listed(list).await;
            assert!(found.contains(words), "{list} of {name}: {found}");
        }
        assert_eq!(door.items(&format!("conversations?person={name}")).await.len(), 1, "{name}");
        assert_eq!(door.items(&format!("conversations?text={name}")).await.len(), 1, "{name}");
        let (_, told) = door.run(&["turns", "list", "--person", name]).await;
        assert!(told.contains("hello again") && told.contains("bill"), "{name}: {told}");
    }
    assert_eq!(door.items("turns?person=grace").await, [] as [Value; 0]);
    let (_, told) = door.run(&["route", "explain", "--channel", "telegram.main", "--person", "lovelace"]).await;
    assert!(told.contains("Lovelace"), "{told}");
    let (wrong, told) = door.run(&["send", "lovelase", "hello"]).await;
    assert!(wrong == Some(1) && told.contains("did you mean Lovelace?"), "{told}");
    let (wrong, told) = door.run(&["send", "role:guest", "hello"]).await;
    assert!(wrong == Some(1) && told.contains("nobody has the role guest"), "{told}");
    let (forgotten, told) = door.run(&["forget", "lovelace", "--yes"]).await;
    assert!(forgotten == Some(0) && told.contains(&format!("{place} is forgotten")), "{told}");
}

#[tokio::test]
async fn a_code_is_read_as_people_type_it() {
    let door = Door::start().await;
    let (ada, bob) = (door.telegram.person("Ada"), door.telegram.person("Bob"));
    let (of_ada, of_bob) = (door.code_of(&ada).await, door.code_of(&bob).await);

    let named_ada = door.approve(&of_ada.to_lowercase(), json!({})).await;
    let named_bob = door.approve(&of_bob.replace('-', "%20"), json!({})).await;

    assert_eq!((&named_ada["name"], &named_bob["name"]), (&json!("Ada"), &json!("Bob")));
}

#[tokio::test]
async fn who_is_declined_is_given_no_other_code() {
    let door = Door::start().await;
    let (eve, ada) = (door.telegram.person("Eve"), door.telegram.person("Ada"));
    let code = door.code_of(&eve).await;

    let declined = door.post(&format!("pairings/{code}/decline"), json!({ "reason": "unknown" })).await;
    eve.says("let me in");
    door.request_of(&ada).await;
    let approved = door.post(&format!("pairings/{code}/approve"), json!({})).await;

    assert_eq!(declined.status(), StatusCode::NO_CONTENT);
    problem(approved, StatusCode::NOT_FOUND).await;
    let waiting = door.items("pairings").await;
    assert!(waiting.iter().all(|item| item["name"] == "Ada"), "{waiting:?}");
    assert!(door.items("people").await.is_empty());
}

#[tokio::test]
async fn who_is_revoked_has_to_ask_again() {
    let door = Door::start().await;
    let ada = door.telegram.person("Ada");
    let code = door.code_of(&ada).await;
    door.approve(&code, json!({})).await;
    let revoke = async |person: String| door.post("people/revoke", json!({ "person": person })).await;
    let of_ada = format!("telegram.main/{}", ada.id());

    assert_eq!(revoke(of_ada.clone()).await.status(), StatusCode::OK);
    problem(revoke(of_ada).await, StatusCode::NOT_FOUND).await;
    problem(revoke("Ada".to_owned()).await, StatusCode::BAD_REQUEST).await;

    assert!(door.items("people").await.is_empty());
    assert_ne!(door.code_of(&ada).await, code);
}

#[tokio::test]
async fn a_token_lets_people_in_as_its_role_allows() {
    let door = Door::start().await;
    let (ada, grace) = (door.telegram.person("Ada"), door.telegram.person("Grace"));
    let (of_ada, of_grace) = (door.code_of(&ada).await, door.code_of(&grace).await);
    let (viewer, operator) = (door.token("viewer", None).await, door.token("operator", None).await);
    let approve = async |token: &str, code: &str, role: &str| {
        door.post_with(token, &format!("pairings/{code}/approve"), json!({ "role": role })).await
    };

    assert_eq!(door.items_for(&viewer, "pairings").await.len(), 2);
    problem(approve(&viewer, &of_ada, "member").await, StatusCode::FORBIDDEN).await;
    let refused = problem(approve(&operator, &of_grace, "owner").await, StatusCode::FORBIDDEN).await;
    let member = json_of(approve(&operator, &of_ada, "member").await).await;
    let owner = json_of(approve(ADMIN_TOKEN, &of_grace, "owner").await).await;

    assert!(refused.contains("owner") && refused.contains("`admin`"), "{refused}");
    assert_eq!((&member["role"], &member["identities"][0]["added_by"]), (&json!("member"), &json!("the operator")));
    assert_eq!((&owner["name"], &owner["role"]), (&json!("Grace"), &json!("owner")));
    assert_eq!(door.items_for(&viewer, "people").await, [member, owner]);
}

#[tokio::test]
async fn a_token_for_other_channels_lets_nobody_in() {
    let door = Door::start().await;
    let (ada, bob) = (door.telegram.person("Ada"), door.telegram.person("Bob"));
    let (of_ada, of_bob) = (door.code_of(&ada).await, door.code_of(&bob).await);
    door.approve(&of_ada, json!({})).await;
    let token = door.token("operator", Some(&["webhook.test"])).await;
    let revoked = json!({ "person": format!("telegram.main/{}", ada.id()) });

    assert!(door.items_for(&token, "pairings").await.is_empty());
    assert!(door.items_for(&token, "people").await.is_empty());
    for action in ["approve", "decline"] {
        let path = format!("pairings/{of_bob}/{action}");
        problem(door.post_with(&token, &path, json!({})).await, StatusCode::NOT_FOUND).await;
    }
    problem(door.post_with(&token, "people/revoke", revoked).await, StatusCode::NOT_FOUND).await;

    assert_eq!((door.items("pairings").await.len(), door.items("people").await.len()), (1, 1));
}

#[tokio::test]
async fn who_guesses_codes_is_stopped() {
    let door = Door::start().await;
    let code = door.code_of(&door.telegram.person("Ada")).await;
    let approve = async |code: &str| door.post(&format!("pairings/{code}/approve"), json!({})).await;

    for number in 0..10 {
        problem(approve(&format!("2222-222{number}")).await, StatusCode::NOT_FOUND).await;
    }
    let refused = approve(&code).await;

    let pause: u64 = refused.headers()[header::RETRY_AFTER].to_str().unwrap().parse().unwrap();
    assert!((3_000..=3_600).contains(&pause), "{pause}");
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(json_of(refused).await["type"], "urn:rejoinder:problem:too-many-codes");
    assert_eq!(door.items("pairings").await.len(), 1);
}

#[tokio::test]
async fn a_name_that_cannot_be_shown_is_refused() {
    let door = Door::start().await;
    let code = door.code_of(&door.telegram.person("Ada")).await;

    for body in [json!({ "name": " " }), json!({ "name": "A\u{7}" }), json!({ "role": "admin" })] {
        problem(door.post(&format!("pairings/{code}/approve"), body).await, StatusCode::BAD_REQUEST).await;
    }

    assert_eq!(door.items("pairings").await.len(), 1);
}

#[tokio::test]
async fn the_command_line_lets_people_in_and_out() {
    let door = Door::start().await;
    let ada = door.telegram.person("Ada");
    let who = format!("telegram.main/{}", ada.id());
    let (_, nobody) = door.run(&["pairing", "list"]).await;
    let code = door.code_of(&ada).await;

    let (_, waiting) = door.run(&["pairing", "list"]).await;
    let typed = code.replace('-', "").to_lowercase();
    let approved = door.run(&["pairing", "approve", &typed, "--name", "Ada L.", "--role", "owner"]).await;
    let (_, people) = door.run(&["people", "list"]).await;
    let again = door.run(&["pairing", "approve", &code]).await;
    let (revoked, _) = door.run(&["pairing", "revoke", &who, "--reason", "moved"]).await;
    let (_, empty) = door.run(&["people", "list"]).await;

    assert_eq!(nobody, "Nobody asks to be let in.\n");
    assert!(waiting.contains(&code) && waiting.contains(&who) && waiting.contains("pairing approve"), "{waiting}");
    assert_eq!(approved, (Some(0), format!("Ada L. ({who}) is let in.\n")));
    assert!(people.contains("Ada L.") && people.contains("owner") && people.contains(&who), "{people}");
    assert_eq!(again, (Some(1), "error: no request that waits has this code\n".to_owned()));
    assert_eq!((revoked, empty.as_str()), (Some(0), "Nobody is known.\n"));
}

#[tokio::test]
async fn who_chose_a_home_is_listed_with_it() {
    let door = Door::start().await;
    let ada = door.telegram.person("Ada");
    let code = door.code_of(&ada).await;
    let person = door.approve(&code, json!({})).await;
    assert_eq!(person["identities"][0]["is_home"], false, "{person}");

    ada.says("/home here");
    ada.hears("From now on I reach you in this chat.").await;

    let people = door.items("people").await;
    assert_eq!(people[0]["identities"][0]["is_home"], true, "{people:?}");
    let (_, listed) = door.run(&["people", "list"]).await;
    assert!(listed.contains(&format!("telegram.main/{} (home)", ada.id())), "{listed}");
    ada.says("/home off");
    ada.finds("the answer", |message| message.ours && message.text.contains("You have chosen no chat now")).await;
    let (_, listed) = door.run(&["people", "list"]).await;
    assert!(!listed.contains("(home)"), "{listed}");
}

#[tokio::test]
async fn the_command_line_declines() {
    let door = Door::start().await;
    let code = door.code_of(&door.telegram.person("Eve")).await;

    let (declined, said) = door.run(&["pairing", "decline", &code]).await;
    let (_, json) = door.run(&["pairing", "list", "--json"]).await;

    assert_eq!(declined, Some(0), "{said}");
    let list: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(list, json!({ "items": [], "next": null }));
}
