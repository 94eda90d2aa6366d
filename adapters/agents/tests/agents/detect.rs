//! How `rejoinder init` finds servers, and how `rejoinder doctor` checks models.

use rejoinder_agents::{
    ModelSection, ModelStatus, ModelsError, OpenAiSection, Origin, ServerCandidates, find_local, say_hello,
};
use rejoinder_config::Secret;
use serde_json::{Value, json};
use url::Url;

use crate::double::{Answer, Server, client};

#[tokio::test]
async fn a_server_that_lists_its_models_is_found() {
    let list: Value = json!({"object": "list", "data": [{"id": "llama3.1"}, {"id": "qwen3"}]});
    let ollama = Server::answering([Answer::json(200, &list)]).await;
    let locked = Server::answering([Answer::error(401, "no key")]).await;
    let candidates = ServerCandidates {
        environment: Some(locked.base_url.clone()),
        api_key: Some("sk-secret".into()),
        local: vec![(Origin::Ollama, ollama.base_url.clone())],
    };
    let found = find_local(&client(), &candidates).await;
    let servers: Vec<_> = found.iter().map(|found| (found.origin, &found.base_url, found.models.len())).collect();
    assert_eq!(servers, [(Origin::Environment, &locked.base_url, 0), (Origin::Ollama, &ollama.base_url, 2)]);
    assert_eq!(locked.requests()[0].headers["authorization"], "Bearer sk-secret");
    assert!(ollama.requests()[0].headers.get("authorization").is_none());
}

#[tokio::test]
async fn the_usual_servers_of_this_machine_are_looked_for() {
    let places: Vec<_> =
        ServerCandidates::default().local.into_iter().map(|(origin, url)| (origin, url.port())).collect();
    let expected = [(Origin::Ollama, 11434), (Origin::LmStudio, 1234), (Origin::LlamaCpp, 8080), (Origin::Vllm, 8000)];
    assert_eq!(places, expected.map(|(origin, port)| (origin, Some(port))));

    // A program at such a port that is no model server, and one that has.
    let (web, studio) =
        (Server::answering([Answer::error(401, "sign in")]).await, Server::answering([list(&["qwen3"])]).await);
    let local = vec![(Origin::Vllm, web.base_url.clone()), (Origin::LmStudio, studio.base_url.clone())];
    let found = find_local(&client(), &ServerCandidates { local, ..ServerCandidates::default() }).await;
    assert_eq!(found.iter().map(|found| found.origin).collect::<Vec<_>>(), [Origin::LmStudio]);
}

#[tokio::test]
async fn something_else_that_answers_is_not_taken_for_a_model() {
    let other = Server::answering([Answer::error(404, "not found"), Answer::says(&["Hi"])]).await;
    for _ in 0..2 {
        let local = vec![(Origin::LlamaCpp, other.base_url.clone())];
        let candidates = ServerCandidates { local, ..ServerCandidates::default() };
        assert_eq!(find_local(&client(), &candidates).await, []);
    }
}

/// Asks a server whether it has `llama3.1`.
async fn asked(base_url: Url, api_key: Option<Secret>) -> Result<ModelStatus, ModelsError> {
    let agent = OpenAiSection { base_url, api_key, model: "llama3.1".to_owned(), ..OpenAiSection::default() };
    agent.check_model(&client()).await
}

/// Asks a server with these answers whether it has `llama3.1`.
async fn status_after(answers: impl IntoIterator<Item = Answer>) -> Result<ModelStatus, ModelsError> {
    let server = Server::answering(answers).await;
    asked(server.base_url.clone(), Some("sk-secret".into())).await
}

fn list(ids: &[&str]) -> Answer {
    let models: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
    Answer::json(200, &json!({"object": "list", "data": models}))
}

#[tokio::test]
async fn a_model_is_known_by_its_name_with_or_without_the_usual_tag() {
    assert_eq!(status_after([list(&["qwen3", "llama3.1"])]).await, Ok(ModelStatus::Available));
    assert_eq!(status_after([list(&["llama3.1:latest"])]).await, Ok(ModelStatus::Available));
    assert_eq!(
        status_after([list(&["qwen3"]), Answer::json(200, &json!({"id": "llama3.1"}))]).await,
        Ok(ModelStatus::Available)
    );
}

#[tokio::test]
async fn a_model_that_is_not_listed_is_unknown_only_where_the_server_says_so() {
    let listed = vec!["qwen3".to_owned()];

    let no_such_model = Answer::error(404, "The model `llama3.1` does not exist");
    assert_eq!(status_after([list(&["qwen3"]), no_such_model]).await, Ok(ModelStatus::Missing(listed.clone())));
    assert_eq!(
        status_after([list(&["qwen3"]), Answer::error(404, "File Not Found")]).await,
        Ok(ModelStatus::Unlisted(listed))
    );
}

#[tokio::test]
async fn why_the_models_are_not_known_is_named() {
    assert_eq!(status_after([Answer::error(401, "no key")]).await, Err(ModelsError::KeyRefused(401)));
    assert_eq!(status_after([Answer::error(503, "loading")]).await, Err(ModelsError::Failing(503)));
    assert!(matches!(status_after([Answer::error(404, "not found")]).await, Err(ModelsError::NoList(_))));
    let nowhere = "http://user:sesame@127.0.0.1:1/v1?key=sesame".parse().expect("an address");
    let error = asked(nowhere, None).await.expect_err("no server listens there");
    assert!(matches!(&error, ModelsError::Unreachable(why) if !why.contains("sesame")), "{error}");
}

#[tokio::test]
async fn a_trial_says_what_came_back_and_never_the_key() {
    let says = |text: &str| Answer::json(200, &json!({"choices": [{"message": {"content": text}}]}));
    let answers = [says("<think>A person.</think>Hello."), says(""), Answer::error(401, "no such key: sk-secret")];
    let server = Server::answering(answers).await;
    let ask = async || say_hello(&client(), &server.base_url, Some(&"sk-secret".into()), "llama3.1").await;

    assert_eq!(ask().await.unwrap(), "Hello.");
    assert_eq!(ask().await.unwrap_err().to_string(), "the agent's answer is invalid: it is empty");
    let refused = ask().await.unwrap_err().to_string();

    assert_eq!(refused, "the agent failed: 401 Unauthorized: no such key: [key]");
    let request = &server.requests()[0];
    assert_eq!(
        (&request.body["model"], &request.headers["authorization"]),
        (&json!("llama3.1"), &"Bearer sk-secret".parse().unwrap())
    );
}
