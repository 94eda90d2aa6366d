//! Sends alerts: to a conversation, to a URL, to a program.

use std::{path::Path, process::Stdio, time::Duration};

use anyhow::{Context, Result, anyhow, bail, ensure};
use rejoinder_config::{AlertTarget, Secret};
use rejoinder_core::{Actor, ConversationRef, Engine, NewMessage, SharedClock, Target, TurnId};
use reqwest::Client;
use serde::Serialize;
use standardwebhooks::{HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP, Webhook};
use tokio::{io::AsyncWriteExt, process::Command};
use url::Url;

use crate::{problems::Problem, time::rfc3339};

/// How long a request or a program may take.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The pauses before a request is tried again.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];

/// What programs and URLs get.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Alert {
    pub(super) id: String,
    /// `alert`, `digest` or `test`.
    #[serde(rename = "type")]
    pub(super) class: &'static str,
    pub(super) timestamp: String,
    pub(super) data: Data,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Data {
    /// What people read, as Markdown.
    pub(super) text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) begun: Vec<Problem>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) grown: Vec<Problem>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) ended: Vec<Problem>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) still: Vec<Problem>,
}

/// What signs with a key.
pub(super) fn signer(secret: &Secret) -> Result<Webhook> {
    let signer = match secret.expose() {
        key if key.starts_with("whsec_") => Webhook::new(key),
        key => Webhook::from_bytes(key.as_bytes().to_vec()),
    };
    signer.map_err(|_| anyhow!("alerts.secret is no key of Standard Webhooks"))
}

pub(super) struct Sender {
    engine: Engine,
    clock: SharedClock,
    http: Client,
    signer: Option<Webhook>,
}

impl Sender {
    pub(super) const fn new(engine: Engine, clock: SharedClock, http: Client, signer: Option<Webhook>) -> Self {
        Self { engine, clock, http, signer }
    }

    /// An alert that is made now.
    pub(super) fn alert(&self, class: &'static str, data: Data) -> Alert {
        let now = self.clock.now();
        Alert { id: TurnId::new(now).to_string(), class, timestamp: rfc3339(now), data }
    }

    pub(super) async fn send(&self, target: &AlertTarget, alert: &Alert) -> Result<()> {
        let sent = match target {
            AlertTarget::Conversation(to) => self.say(to, alert).await,
            AlertTarget::Url(url) => self.post(url, alert).await,
            AlertTarget::Program(program) => run(program, alert).await,
        };
        let result = if sent.is_ok() { "sent" } else { "failed" };
        metrics::counter!("rejoinder_alerts_total", "class" => alert.class, "result" => result).increment(1);
        sent
    }

    /// From here on it is a delivery like others: it is retried, and becomes a dead letter.
    async fn say(&self, to: &ConversationRef, alert: &Alert) -> Result<()> {
        let by = Actor::named(rejoinder_core::Sender::ALERTER.to_owned());
        // Another way is tried then, which it is not once the platform has refused it.
        ensure!(self.engine.has_conversation(to).await?, "there is no conversation {to}: nobody has written there yet");
        let (to, text) = (Target::Conversation(to.clone()), alert.data.text.clone());
        self.engine
            .initiative()
            .send(&NewMessage { to, text, attachments: Vec::new(), is_urgent: true }, &alert.id, &by)
            .await?;
        Ok(())
    }

    async fn post(&self, url: &Url, alert: &Alert) -> Result<()> {
        let mut pauses = PAUSES.iter();
        loop {
            match (self.post_once(url, alert).await, pauses.next()) {
                (Ok(()), _) => return Ok(()),
                (Err(error), None) => return Err(error),
                (Err(_), Some(pause)) => self.clock.sleep(*pause).await,
            }
        }
    }

    async fn post_once(&self, url: &Url, alert: &Alert) -> Result<()> {
        let body = serde_json::to_vec(alert)?;
        let seconds = self.clock.now().as_millis() / 1000;
        let mut request = self.http.post(url.clone()).timeout(TIMEOUT).header("content-type", "application/json");
        if let Some(signer) = &self.signer {
            let signature = signer.sign(&alert.id, seconds, &body).map_err(|_| anyhow!("it cannot be signed"))?;
            request = request
                .header(HEADER_WEBHOOK_ID, &alert.id)
                .header(HEADER_WEBHOOK_TIMESTAMP, seconds)
                .header(HEADER_WEBHOOK_SIGNATURE, signature);
        }
        let response = request.body(body).send().await.map_err(reqwest::Error::without_url)?;
        ensure!(response.status().is_success(), "it answered {}", response.status());
        Ok(())
    }
}

/// Runs a program with the alert on its standard input. It gets none of the gateway's variables, which may be secrets.
async fn run(program: &Path, alert: &Alert) -> Result<()> {
    let mut command = Command::new(program);
    command.env_clear().stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    for name in ["PATH", "HOME", "LANG"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    let ended = async {
        let mut child = command.spawn().context("it cannot be started")?;
        if let Some(mut stdin) = child.stdin.take() {
            // It need not read it.
            let _ = stdin.write_all(&serde_json::to_vec(alert)?).await;
        }
        Ok::<_, anyhow::Error>(child.wait_with_output().await?)
    };
    let Ok(output) = tokio::time::timeout(TIMEOUT, ended).await else { bail!("it did not end within {TIMEOUT:?}") };
    let output = output?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    bail!("it ended with {}: {}", output.status, said.lines().next().unwrap_or_default());
}
