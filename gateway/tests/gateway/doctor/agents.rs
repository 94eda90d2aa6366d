//! Findings about agents: whether they can be reached, and have the model.

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use rstest::rstest;
use serde_json::json;
use tokio::net::TcpListener;

use super::{DoctorRun, folder, unused_address};

const KEY: &str = "sk-right";

/// Starts a server with these models that requires the key; returns its `base_url`.
async fn server(models: &'static [&'static str]) -> String {
    let answer = async |State(models): State<&'static [&'static str]>, uri: Uri, headers: HeaderMap| -> Response {
        let is = |name: &str, value: &str| headers.get(name).is_some_and(|found| found == value);
        let is_anthropic = is("x-api-key", KEY) && headers.contains_key("anthropic-version");
        if !is_anthropic && !is("authorization", &format!("Bearer {KEY}")) {
            return StatusCode::UNAUTHORIZED.into_response();
        }
        match uri.path() {
            "/v1/models" => Json(json!({ "data": models.iter().map(|id| json!({ "id": id })).collect::<Vec<_>>() })),
            path if path.starts_with("/v1/models/") => {
                let error = json!({ "error": { "message": "there is no such model" } });
                return (StatusCode::NOT_FOUND, Json(error)).into_response();
            }
            _ => return StatusCode::NOT_FOUND.into_response(),
        }
        .into_response()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes = Router::new().fallback(answer).with_state(models);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    format!("http://{address}/v1")
}

/// Runs the doctor for an agent whose model is `llama3.1`.
async fn run_doctor(base_url: &str, more: &str) -> DoctorRun {
    let config = format!("[agents.main]\nkind = \"openai\"\nbase_url = \"{base_url}\"\nmodel = \"llama3.1\"\n{more}\n");
    DoctorRun::in_folder(folder(&config).await.path()).await
}

#[tokio::test]
async fn an_agent_that_has_the_model_is_well() {
    let base_url = server(&["qwen3", "llama3.1:latest"]).await;

    let doctor = run_doctor(&base_url, &format!("api_key = \"{KEY}\"")).await;

    assert_eq!(doctor.code, Some(0));
    doctor.assert_finding(
        "agents.main",
        "ok",
        &["llama3.1 at http://127.0.0.1:", "the default: it lists the model after "],
    );
}

#[tokio::test]
async fn a_model_that_is_not_there_is_wrong_and_those_that_are_there_are_named() {
    let base_url = server(&["qwen3", "gemma3"]).await;

    let doctor = run_doctor(&base_url, &format!("api_key = \"{KEY}\"")).await;

    assert_eq!(doctor.code, Some(1));
    doctor.assert_finding("agents.main", "wrong", &["no such model", "agents.main.model", "qwen3, gemma3"]);
}

#[tokio::test]
async fn a_key_that_is_refused_is_wrong_and_not_said() {
    let base_url = server(&["llama3.1"]).await;

    let refused = run_doctor(&base_url, "api_key = \"sk-wrong\"").await;
    let missing = run_doctor(&base_url, "").await;

    assert_eq!((refused.code, missing.code), (Some(1), Some(1)));
    refused.assert_finding("agents.main", "wrong", &["refuses the key", "agents.main.api_key"]);
    missing.assert_finding("agents.main", "wrong", &["needs a key", "agents.main.api_key"]);
    assert!(!format!("{:?}", refused.findings).contains("sk-wrong"), "{:?}", refused.findings);
}

#[tokio::test]
async fn claude_is_asked_for_by_its_own_api() {
    let base_url = server(&["claude-haiku"]).await;
    let run = async |model: &str, base_url: &str| {
        let agent = format!("[agents.main]\nkind = \"anthropic\"\nbase_url = \"{base_url}\"\nmodel = \"{model}\"");
        let config = format!("{agent}\napi_key = \"{KEY}\"\n");
        DoctorRun::in_folder(folder(&config).await.path()).await
    };
    let root = base_url.trim_end_matches("/v1");

    run("claude-haiku", root).await.assert_finding(
        "agents.main",
        "ok",
        &["claude-haiku at http://127.0.0.1:", "it lists the model after "],
    );
    run("claude", root).await.assert_finding("agents.main", "wrong", &["no such model", "claude-haiku"]);
    run("claude", &base_url).await.assert_finding("agents.main", "warning", &["does not list", "end in /v1"]);
}

#[tokio::test]
async fn a_server_that_does_not_list_its_models_is_a_warning() {
    let base_url = server(&["llama3.1"]).await.replace("/v1", "");

    let doctor = run_doctor(&base_url, &format!("api_key = \"{KEY}\"")).await;

    assert_eq!(doctor.code, Some(0));
    doctor.assert_finding("agents.main", "warning", &["does not list its models", "/v1"]);
}

#[tokio::test]
async fn an_agent_that_cannot_be_reached_is_wrong() {
    let doctor = run_doctor(&format!("http://{}/v1", unused_address().await), "").await;

    assert_eq!(doctor.code, Some(1));
    doctor.assert_finding("agents.main", "wrong", &["cannot be reached", "agents.main.base_url"]);
}

/// Runs the doctor for an agent that is this program.
async fn run_doctor_for(program: &str) -> DoctorRun {
    let config = format!("[agents.main]\nkind = \"command\"\ncommand = [\"{program}\"]\n");
    DoctorRun::in_folder(folder(&config).await.path()).await
}

#[tokio::test]
async fn a_program_that_starts_is_well() {
    let doctor = run_doctor_for("/bin/sh").await;

    assert_eq!(doctor.code, Some(0));
    doctor.assert_finding("agents.main", "ok", &["/sh, the default: it starts"]);
}

#[tokio::test]
async fn a_program_that_is_not_there_is_wrong() {
    let doctor = run_doctor_for("no-such-program").await;

    assert_eq!(doctor.code, Some(1));
    doctor.assert_finding("agents.main", "wrong", &["there is no program `no-such-program` in PATH"]);
}

#[tokio::test]
async fn a_script_whose_interpreter_is_not_there_is_wrong() {
    let scripts = tempfile::tempdir().unwrap();
    let script = scripts.path().join("answer");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();

    let doctor = run_doctor_for(script.to_str().unwrap()).await;

    assert_eq!(doctor.code, Some(1));
    doctor.assert_finding("agents.main", "wrong", &["it does not start", "first line"]);
}

#[tokio::test]
async fn a_service_is_well_if_it_can_be_reached_and_is_sent_no_turn() {
    let url = server(&[]).await.replace("/v1", "/turns");
    let config = |url: &str| format!("[agents.main]\nkind = \"http\"\nurl = \"{url}\"\n");

    let there = DoctorRun::in_folder(folder(&config(&url)).await.path()).await;
    let gone = format!("http://{}/turns", unused_address().await);
    let gone = DoctorRun::in_folder(folder(&config(&gone)).await.path()).await;

    assert_eq!((there.code, gone.code), (Some(0), Some(1)));
    there.assert_finding("agents.main", "ok", &["can be reached: it responds after ", "agents.main.secret"]);
    gone.assert_finding("agents.main", "wrong", &["cannot be reached: ", "Connection refused", "agents.main.url"]);
}

#[tokio::test]
async fn an_agent_whose_workers_fetch_its_turns_is_checked_for_its_tokens() {
    let folder = folder("[agents.fleet]\nkind = \"pull\"\ntoken = { generate = true }\n").await;

    let doctor = DoctorRun::in_folder(folder.path()).await;

    assert_eq!(doctor.code, Some(0), "{:#?}", doctor.findings);
    doctor.assert_finding("agents.fleet", "ok", &["/agents/fleet/next", "agent-fleet-token"]);
}

/// Runs the doctor for a program that speaks ACP.
#[cfg(feature = "acp")]
async fn run_doctor_for_a_program(command: &str) -> DoctorRun {
    let config = format!("[agents.main]\nkind = \"acp\"\ncommand = {command}\ncwd = \"/\"\n");
    DoctorRun::in_folder(folder(&config).await.path()).await
}

#[cfg(feature = "acp")]
#[tokio::test]
async fn a_program_that_speaks_acp_is_well() {
    let info = r#"{"protocolVersion":1,"agentInfo":{"name":"scribe","version":"2.1"}}"#;
    let script = format!(r#"read -r line; echo '{{"jsonrpc":"2.0","id":1,"result":{info}}}'; read -r line"#);

    let doctor = run_doctor_for_a_program(&format!("[\"/bin/sh\", \"-c\", \"\"\"{script}\"\"\"]")).await;

    assert_eq!(doctor.code, Some(0));
    doctor.assert_finding("agents.main", "ok", &["the default", "scribe 2.1 answers after"]);
}

#[cfg(feature = "acp")]
#[tokio::test]
async fn a_program_that_is_not_there_or_speaks_something_else_is_wrong() {
    let missing = run_doctor_for_a_program("[\"no-such-agent\"]").await;
    missing.assert_finding("agents.main", "wrong", &["there is no program no-such-agent", "agents.main.command"]);

    let other = run_doctor_for_a_program("[\"/bin/sh\", \"-c\", \"echo no key >&2; exit 1\"]").await;
    other.assert_finding("agents.main", "wrong", &["exit code 1", "no key"]);
}

/// Runs the doctor for an agent whose card names the interface at `interface`, or its own address, with this binding.
#[cfg(feature = "a2a")]
async fn run_doctor_for_a_card(interface: Option<&'static str>, binding: &'static str) -> DoctorRun {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let url = interface.map_or_else(|| format!("http://{address}/"), ToOwned::to_owned);
    let card = json!({
        "name": "helper", "version": "2.1", "capabilities": { "streaming": true },
        "supportedInterfaces": [{ "url": url, "protocolBinding": binding, "protocolVersion": "1.0" }],
    });
    let routes = Router::new().route("/.well-known/agent-card.json", axum::routing::get(async || Json(card)));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    DoctorRun::in_folder(folder(&a2a_agent(&address.to_string())).await.path()).await
}

#[cfg(feature = "a2a")]
fn a2a_agent(address: &str) -> String {
    format!("[agents.main]\nkind = \"a2a\"\nurl = \"http://{address}\"\n")
}

#[cfg(feature = "a2a")]
#[rstest]
#[tokio::test]
async fn an_a2a_agent_is_well_if_its_card_can_be_used(#[values("JSONRPC", "HTTP+JSON")] binding: &'static str) {
    let doctor = run_doctor_for_a_card(None, binding).await;

    assert_eq!(doctor.code, Some(0));
    let over = format!("over {binding}, and streams its answers");
    doctor.assert_finding("agents.main", "ok", &["the default", "helper 2.1 answers after", &over]);
}

#[cfg(feature = "a2a")]
#[tokio::test]
async fn an_a2a_agent_that_is_not_there_or_is_somewhere_else_is_wrong() {
    let elsewhere = run_doctor_for_a_card(Some("http://127.0.0.2:9/"), "JSONRPC").await;
    elsewhere.assert_finding("agents.main", "wrong", &["http://127.0.0.2:9/", "another address than `url`"]);

    let missing = DoctorRun::in_folder(folder(&a2a_agent(&unused_address().await.to_string())).await.path()).await;
    missing.assert_finding("agents.main", "wrong", &["cannot be reached", "agents.main.url"]);
}
