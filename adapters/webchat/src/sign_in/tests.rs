use axum::body::{Body, to_bytes};
use rejoinder_core::{ChannelAdapter, Clock, FileLimits, PersonRole, SeedPerson, SystemClock, store::Transition};
use rejoinder_testkit::{Gateway, LeadingClock, Setup};
use rstest::rstest;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::*;
use crate::{WebchatSection, WebchatSettings, passkeys::tests::Authenticator, router};

const URL: &str = "https://chat.example.org";

/// A chat where Ada signs in, and what she has.
struct World {
    gateway: Gateway<WebchatAdapter>,
    clock: Arc<LeadingClock>,
    router: Router,
}

/// What came back: the status, the cookie without its attributes, and the body.
type Reply = (StatusCode, Option<String>, Value);

impl World {
    async fn new() -> Self {
        let clock = Arc::new(LeadingClock::default());
        let sign_in = SignIn { key: "key".into(), header: None, public_url: URL.parse().ok() };
        let adapter = Arc::new(WebchatAdapter::new(WebchatSettings {
            name: "main".to_owned(),
            section: WebchatSection::default(),
            access: Access::People(sign_in),
            origins: vec![URL.to_owned()],
            guesses: Arc::default(),
            files: FileLimits::default(),
            push: None,
            clock: Arc::new(SystemClock),
        }));
        let channel = adapter.channel().clone();
        let setup = Setup::new().clock(Arc::<LeadingClock>::clone(&clock)).settings(move |settings| {
            let person = |name: &str| SeedPerson {
                name: name.to_owned(),
                role: PersonRole::Member,
                identities: vec![Identity { channel: channel.clone(), id: name.to_lowercase() }],
                home: None,
                language: None,
            };
            settings.people = vec![person("Ada"), person("Bob")];
        });
        let gateway = Gateway::start(setup, Arc::clone(&adapter)).await;
        gateway.until_live().await;
        Self { gateway, clock, router: router(vec![adapter]) }
    }

    async fn change(&self, visitors: Vec<VisitorChange>) {
        let transition = Transition { visitors, ..Transition::default() };
        self.gateway.store.commit(transition).await.expect("it is stored");
    }

    /// The code of an invitation of an operator.
    async fn invite(&self, account: &str) -> String {
        let code = format!("invitation of {account}");
        let invitation = Invitation {
            code: token_digest(code.as_bytes()),
            channel: self.gateway.adapter.channel().clone(),
            account: account.to_owned(),
            expires_at: self.clock.now() + Duration::from_hours(1),
        };
        self.change(vec![VisitorChange::Invite(invitation)]).await;
        code
    }

    async fn ask_with(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
        let request = Request::builder().method(method).uri(path).header("host", "chat.example.org");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let request = request.body(Body::from(body.to_string())).expect("a request");
        let response = self.router.clone().oneshot(request).await.expect("a response");
        let cookie = response.headers().get(header::SET_COOKIE).and_then(|cookie| cookie.to_str().ok());
        if let Some(cookie) = cookie {
            let is_safe = ["HttpOnly", "SameSite=Strict", "Path=/chat"].iter().all(|part| cookie.contains(part));
            assert!(is_safe && cookie.ends_with("; Secure"), "{cookie}");
        }
        let cookie = cookie.and_then(|cookie| cookie.split(';').next()).map(str::to_owned);
        let status = response.status();
        let body = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        (status, cookie, serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn ask(&self, path: &str, body: &Value) -> Reply {
        self.ask_with("POST", path, &[("origin", URL)], body).await
    }

    async fn challenge(&self, invitation: Option<&str>) -> Value {
        let (status, _, challenge) = self.ask("/chat/session/challenge", &json!({ "invitation": invitation })).await;
        assert_eq!(status, StatusCode::OK, "{challenge}");
        challenge
    }

    /// Ada registers a passkey, and is signed in.
    async fn registered(&self) -> (Authenticator, String) {
        let code = self.invite("ada").await;
        let challenge = self.challenge(Some(&code)).await;
        assert_eq!(challenge["new"]["name"], "Ada");
        let authenticator = authenticator();
        let (status, cookie, body) =
            self.ask("/chat/session/passkey", &new_key(&authenticator, &challenge, &code)).await;
        assert_eq!((status, &body["name"]), (StatusCode::OK, &json!("Ada")), "{body}");
        (authenticator, cookie.expect("a cookie"))
    }

    /// Who has a cookie, as the chat sees it.
    async fn who(&self, cookie: &str) -> Option<String> {
        let request = Request::builder().uri("/chat/ws").header("cookie", cookie).body(()).expect("a request");
        let adapter = &self.gateway.adapter;
        let context = adapter.socket_context.get().expect("it runs");
        let visitor = visitor(adapter, &context, &request.into_parts().0).await.expect("the store is read");
        visitor.map(|visitor| visitor.account)
    }
}

fn party() -> Party {
    Party { id: "chat.example.org".to_owned(), origin: URL.to_owned() }
}

fn authenticator() -> Authenticator {
    Authenticator::new(-7, &party())
}

fn signed_challenge(challenge: &Value) -> Vec<u8> {
    BASE64_URL_SAFE_NO_PAD.decode(challenge["challenge"].as_str().expect("a challenge")).expect("base64")
}

fn new_key(authenticator: &Authenticator, challenge: &Value, code: &str) -> Value {
    let client = authenticator.client_data("webauthn.create", &signed_challenge(challenge)).to_string();
    json!({
        "invitation": code,
        "client_data": encoded(client.as_bytes()),
        "authenticator_data": encoded(&authenticator.registered()),
        "public_key": encoded(&authenticator.public_key()),
        "algorithm": authenticator.algorithm,
    })
}

fn opening(authenticator: &Authenticator, challenge: &Value) -> Value {
    let client = authenticator.client_data("webauthn.get", &signed_challenge(challenge)).to_string();
    let (data, signature) = authenticator.sign(client.as_bytes());
    json!({
        "id": encoded(&Authenticator::ID),
        "client_data": encoded(client.as_bytes()),
        "authenticator_data": encoded(&data),
        "signature": encoded(&signature),
    })
}

#[tokio::test]
async fn a_passkey_signs_in_and_out() {
    let world = World::new().await;
    let (mut authenticator, first) = world.registered().await;
    assert_eq!(world.who(&first).await.as_deref(), Some("ada"));

    authenticator.counter += 1;
    let challenge = world.challenge(None).await;
    let (status, second, body) = world.ask("/chat/session", &opening(&authenticator, &challenge)).await;
    let second = second.expect("a cookie");
    assert_eq!((status, &body["name"]), (StatusCode::OK, &json!("Ada")), "{body}");
    assert_ne!(first, second);
    assert_eq!(world.who(&second).await.as_deref(), Some("ada"));

    let headers = [("origin", URL), ("cookie", &*first)];
    let (status, cookie, _) = world.ask_with("DELETE", "/chat/session", &headers, &json!({})).await;
    assert_eq!((status, cookie.as_deref()), (StatusCode::NO_CONTENT, Some("rejoinder_visit_main=")));
    assert_eq!((world.who(&first).await, world.who(&second).await.as_deref()), (None, Some("ada")));

    world.clock.advance(LIFETIME);
    assert_eq!(world.who(&second).await, None);
}

/// A second page with the same signature is no second person.
#[tokio::test]
async fn a_challenge_is_answered_once_and_in_time() {
    let world = World::new().await;
    let (mut authenticator, cookie) = world.registered().await;
    authenticator.counter = 0;
    // Of an authenticator that does not count.
    let headers = [("origin", URL), ("cookie", &*cookie)];
    let register = async |authenticator: &Authenticator| {
        world.change(vec![VisitorChange::RemovePasskeys(ada(&world))]).await;
        let code = world.invite("ada").await;
        let challenge = world.challenge(Some(&code)).await;
        world.ask("/chat/session/passkey", &new_key(authenticator, &challenge, &code)).await.0
    };
    assert_eq!(register(&authenticator).await, StatusCode::OK);

    let challenge = world.challenge(None).await;
    let signed = opening(&authenticator, &challenge);
    let (opened, visit, _) = world.ask("/chat/session", &signed).await;
    let again = world.ask("/chat/session", &signed).await.0;
    assert_eq!((opened, again), (StatusCode::OK, StatusCode::UNAUTHORIZED));
    let headers_of_visit = [headers[0], ("cookie", visit.as_deref().expect("a cookie"))];
    world.ask_with("DELETE", "/chat/session", &headers_of_visit, &json!({})).await;
    assert_eq!(world.ask("/chat/session", &signed).await.0, StatusCode::UNAUTHORIZED, "also after the visit");

    let late = opening(&authenticator, &world.challenge(None).await);
    world.clock.advance(CHALLENGE_LIFETIME);
    assert_eq!(world.ask("/chat/session", &late).await.0, StatusCode::UNAUTHORIZED);

    let mut forged = world.challenge(None).await;
    forged["challenge"] = json!(encoded(&[7; 56]));
    assert_eq!(world.ask("/chat/session", &opening(&authenticator, &forged)).await.0, StatusCode::UNAUTHORIZED);
}

fn ada(world: &World) -> Identity {
    Identity { channel: world.gateway.adapter.channel().clone(), id: "ada".to_owned() }
}

#[tokio::test]
async fn an_invitation_is_used_once() {
    let world = World::new().await;
    world.registered().await;
    let body = json!({ "invitation": "invitation of ada" });

    assert_eq!(world.ask("/chat/session/challenge", &body).await.0, StatusCode::UNAUTHORIZED);

    let code = world.invite("bob").await;
    let challenge = world.challenge(Some(&code)).await;
    world.clock.advance(Duration::from_hours(1));
    let late = world.ask("/chat/session/passkey", &new_key(&authenticator(), &challenge, &code)).await.0;
    assert_eq!(late, StatusCode::UNAUTHORIZED);
}

/// The last one counts, and only who is signed in makes one.
#[tokio::test]
async fn a_person_adds_another_device() {
    let world = World::new().await;
    let (_, cookie) = world.registered().await;
    let invite = async |cookie: &str| {
        let headers = [("origin", URL), ("cookie", cookie)];
        world.ask_with("POST", "/chat/session/invitation", &headers, &json!({})).await
    };

    let (status, _, invitation) = invite(&cookie).await;
    assert_eq!(status, StatusCode::OK, "{invitation}");
    let code = invitation["code"].as_str().expect("a code");
    let challenge = world.challenge(Some(code)).await;

    let known = &challenge["new"]["known"];
    assert_eq!((&challenge["new"]["name"], known), (&json!("Ada"), &json!([encoded(&Authenticator::ID)])));
    // A device with the same passkey would make another one; this one has the same id.
    let again = world.ask("/chat/session/passkey", &new_key(&authenticator(), &challenge, code)).await.0;
    assert_eq!(again, StatusCode::UNAUTHORIZED);
    assert_eq!(invite("rejoinder_visit_main=guess").await.0, StatusCode::UNAUTHORIZED);
}

/// Whichever comes first: a link that was asked for just before opens nothing.
#[tokio::test]
async fn who_is_signed_out_while_they_add_a_device_has_no_link() {
    let world = World::new().await;
    let (mut authenticator, _) = world.registered().await;
    for _ in 0..30 {
        authenticator.counter += 1;
        let challenge = world.challenge(None).await;
        let cookie = world.ask("/chat/session", &opening(&authenticator, &challenge)).await.1.expect("a cookie");
        let headers = [("origin", URL), ("cookie", &*cookie)];
        let (invite, nothing) = ("/chat/session/invitation", json!({}));
        let end = vec![VisitorChange::EndAll { of: ada(&world), at: world.clock.now() }];

        let (invited, ()) = tokio::join!(world.ask_with("POST", invite, &headers, &nothing), world.change(end));

        if let Some(code) = invited.2["code"].as_str() {
            let open = world.gateway.store.invitation(&token_digest(code.as_bytes())).await.expect("it is read");
            assert_eq!(open, None);
        }
    }
}

#[rstest]
#[case::no_page_of_ours("https://evil.example", StatusCode::FORBIDDEN)]
#[case::not_over_tls("http://chat.example.org", StatusCode::FORBIDDEN)]
#[tokio::test]
async fn another_page_signs_nobody_in(#[case] origin: &str, #[case] expected: StatusCode) {
    let world = World::new().await;

    for path in ["/chat/session", "/chat/session/challenge", "/chat/session/passkey", "/chat/session/invitation"] {
        let (status, ..) = world.ask_with("POST", path, &[("origin", origin)], &json!({})).await;
        assert_eq!(status, expected, "{path}");
    }
    assert_eq!(world.ask_with("DELETE", "/chat/session", &[("origin", origin)], &json!({})).await.0, expected);
}

/// A signature of another passkey, one of nobody, and one for another account.
#[tokio::test]
async fn what_proves_nothing_opens_nothing() {
    let world = World::new().await;
    let (mut right, _) = world.registered().await;
    right.counter += 1;
    let wrong = authenticator();
    let challenge = world.challenge(None).await;

    let by_another = opening(&wrong, &challenge);
    let mut of_nobody = opening(&right, &challenge);
    of_nobody["id"] = json!(encoded(b"of nobody"));
    let mut of_bob = opening(&right, &challenge);
    of_bob["user"] = json!(encoded(&user(&Identity { id: "bob".to_owned(), ..ada(&world) })));
    for body in [by_another, of_nobody, of_bob] {
        let (status, cookie, problem) = world.ask("/chat/session", &body).await;
        assert_eq!((status, cookie), (StatusCode::UNAUTHORIZED, None), "{problem}");
    }
    assert_eq!(world.ask("/chat/session", &json!({ "id": "*" })).await.0, StatusCode::BAD_REQUEST);

    let mut of_ada = opening(&right, &challenge);
    of_ada["user"] = json!(encoded(&user(&ada(&world))));
    assert_eq!(world.ask("/chat/session", &of_ada).await.0, StatusCode::OK, "the challenge was not used up");
}

#[tokio::test]
async fn who_guesses_is_slowed_down() {
    let world = World::new().await;
    let mut statuses = Vec::new();
    for number in 0..30 {
        let body = json!({ "invitation": format!("guess {number}") });
        let asked = world.ask("/chat/session/challenge", &body);
        match tokio::time::timeout(Duration::from_millis(100), asked).await {
            Ok((status, ..)) => statuses.push(status),
            Err(_) => break,
        }
    }

    assert!(statuses.len() < 30, "{statuses:?}");
}

#[tokio::test]
async fn a_chat_with_a_token_has_no_sign_in() {
    let adapter = Arc::new(WebchatAdapter::new(WebchatSettings {
        name: "main".to_owned(),
        section: WebchatSection::default(),
        access: Access::Token("secret".into()),
        origins: vec![],
        guesses: Arc::default(),
        files: FileLimits::default(),
        push: None,
        clock: Arc::new(SystemClock),
    }));
    let request = Request::post("/chat/session").header("host", "localhost").body(Body::empty()).expect("a request");

    assert_eq!(router(vec![adapter]).oneshot(request).await.expect("a response").status(), StatusCode::NOT_FOUND);
}
