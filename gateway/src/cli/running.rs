//! The running gateway, as commands call it over the admin API.

use std::{path::Path, time::Duration};

use anyhow::{Context, anyhow};
use rejoinder_config::Config;
use reqwest::{Method, RequestBuilder, StatusCode, redirect::Policy};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde_json::Value;

use super::global::Global;
use crate::{
    console::{command::command_line, failure::Failure},
    gateway::{read_address, url_of},
    wiring,
};

/// How long an answer may take: a bulk operation changes many rows.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The address, without a trailing slash, of the gateway that runs with this configuration and data directory.
pub(super) fn find_url(global: &Global, config: &Config, data_dir: &Path) -> Result<String, Failure> {
    let address = wiring::listen_for_operator(config);
    // A running gateway writes its address down. The port may be one that the system chose.
    match read_address(data_dir) {
        Some(url) => Ok(url),
        None if address.port() == 0 => Err(none_runs(global, data_dir)),
        None => Ok(url_of(address)),
    }
}

/// # Errors
/// When no gateway runs. Otherwise a token would go to whatever else listens at the address of one that was killed.
pub(super) fn check_runs(global: &Global, config: &Config, data_dir: &Path) -> Result<(), Failure> {
    let is_stopped = matches!(wiring::database(config, data_dir).is_in_use(), Ok(false));
    if is_stopped { Err(none_runs(global, data_dir)) } else { Ok(()) }
}

fn none_runs(global: &Global, data_dir: &Path) -> Failure {
    let (data_dir, advice) = (data_dir.display(), advice(global));
    anyhow!("no gateway runs with the data directory {data_dir}: {advice}").into()
}

fn advice(global: &Global) -> String {
    format!("start it with `{}`, or pass its --config and --data", command_line("run", global.config.as_deref()))
}

/// A text as one part of a path.
pub(super) fn path_part(text: &str) -> String {
    let encoded: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
    encoded.replace('+', "%20")
}

pub(super) fn http_client(timeout: Duration) -> Result<reqwest::Client, Failure> {
    // The gateway is on this machine: a configured proxy does not apply.
    let http = reqwest::Client::builder().no_proxy().redirect(Policy::none()).timeout(timeout);
    Ok(http.build().context("cannot create the HTTP client")?)
}

/// The gateway that runs with this configuration and data directory.
pub(super) struct RunningGateway {
    http: reqwest::Client,
    url: String,
    token: SecretString,
    /// What to do if it does not run.
    advice: String,
}

impl RunningGateway {
    /// Finds its address and its token. Calls nothing yet.
    pub(super) fn find(global: &Global) -> Result<Self, Failure> {
        let config = global.load()?.config;
        if !config.admin.enabled {
            return Err(anyhow!("admin.enabled is false, so the gateway cannot be asked").into());
        }
        let data_dir = global.data_dir()?;
        check_runs(global, &config, &data_dir)?;
        let url = find_url(global, &config, &data_dir)?;
        let token = wiring::admin_token(&config, &data_dir).context("cannot read the admin token")?;
        // The first start makes one.
        let token = token.ok_or_else(|| none_runs(global, &data_dir))?;
        Ok(Self { http: http_client(TIMEOUT)?, url, token, advice: advice(global) })
    }

    /// Its address, without a trailing slash.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.answer(self.request(Method::GET, path)).await
    }

    pub(super) async fn post(&self, path: &str, body: &impl Serialize) -> Result<Value, Failure> {
        self.answer(self.request(Method::POST, path).json(body)).await
    }

    /// Removes something from a list.
    pub(super) async fn remove(&self, list: &str, id: &str, body: &impl Serialize) -> Result<Value, Failure> {
        self.answer(self.request(Method::DELETE, &format!("{list}/{}", path_part(id))).json(body)).await
    }

    /// Does `what` with something: `errors/7/mute`.
    pub(super) async fn act(&self, list: &str, id: &str, what: &str, body: &impl Serialize) -> Result<Value, Failure> {
        self.post(&format!("{list}/{}/{what}", path_part(id)), body).await
    }

    /// As [`post`](Self::post), done once for each key.
    pub(super) async fn post_once(
        &self,
        path: &str,
        key: Option<&str>,
        body: &impl Serialize,
    ) -> Result<Value, Failure> {
        let request = self.request(Method::POST, path).json(body);
        self.answer(match key {
            Some(key) => request.header("idempotency-key", key),
            None => request,
        })
        .await
    }

    /// A request for `path` below `/admin/api`.
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}/admin/api/{path}", self.url)).bearer_auth(self.token.expose_secret())
    }

    async fn answer(&self, request: RequestBuilder) -> Result<Value, Failure> {
        let response = request.send().await.map_err(|error| {
            if error.is_connect() {
                anyhow!("no gateway runs at {}: {}", self.url, self.advice)
            } else {
                anyhow!("the gateway at {} does not answer: {error}", self.url)
            }
        })?;
        let status = response.status();
        let body = response.bytes().await.with_context(|| format!("the gateway at {} stopped answering", self.url))?;
        answer(status, &body)
    }
}

/// What an answer says: null if it has no body.
pub(super) fn answer(status: StatusCode, body: &[u8]) -> Result<Value, Failure> {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    if status.is_success() {
        return Ok(answer);
    }
    let why = answer["detail"].as_str().map_or_else(|| status.to_string(), str::to_owned);
    Err(anyhow!(why).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_path_begins_no_other_part() {
        assert_eq!(path_part("ABCD-EFGH"), "ABCD-EFGH");
        assert_eq!(path_part("a b+c/d?e#f%é"), "a%20b%2Bc%2Fd%3Fe%23f%25%C3%A9");
    }
}
