//! What `rejoinder init` finds.

use rejoinder_agents::{Origin, Places, find_local};
use serde_json::{Value, json};

use crate::double::{Answer, Server, client};

#[tokio::test]
async fn a_server_that_lists_its_models_is_found() {
    let list: Value = json!({"object": "list", "data": [{"id": "llama3.1"}, {"id": "qwen3"}]});
    let ollama = Server::answering([Answer::json(200, &list)]).await;
    let locked = Server::answering([Answer::error(401, "no key")]).await;
    let places = Places {
        environment: Some(locked.base_url.clone()),
        api_key: Some("sk-secret".into()),
        ollama: ollama.base_url.clone(),
    };
    let found = find_local(&client(), &places).await;
    let told: Vec<_> = found.iter().map(|found| (found.origin, &found.base_url, found.models.len())).collect();
    assert_eq!(told, [(Origin::Environment, &locked.base_url, 0), (Origin::Ollama, &ollama.base_url, 2)]);
    assert_eq!(locked.asked()[0].headers["authorization"], "Bearer sk-secret");
    assert!(ollama.asked()[0].headers.get("authorization").is_none());
}

#[tokio::test]
async fn something_else_that_answers_is_not_taken_for_a_model() {
    let other = Server::answering([Answer::error(404, "not found"), Answer::says(&["Hi"])]).await;
    for _ in 0..2 {
        let places = Places { ollama: other.base_url.clone(), ..Places::default() };
        assert_eq!(find_local(&client(), &places).await, []);
    }
}
