//! A Matrix account: whether it can be used, and whether its device is signed.

use reqwest::Client;

use super::Finding;
use crate::{
    cli::bots,
    wiring::{BotCheckError, MatrixContact},
};

pub(super) async fn look(account: MatrixContact<'_>, http: &Client) -> Vec<Finding> {
    let about = account.channel.to_string();
    let standing = match account.ask(http).await {
        Ok(standing) => standing,
        Err(BotCheckError::Wrong(why)) => {
            let advice = "docs/matrix.md says what to do, below \"When something is wrong\".";
            return vec![Finding::wrong(about, why).so(advice)];
        }
        Err(BotCheckError::Unreachable(why)) => {
            let advice = format!("Is this machine online, and channels.{about}.homeserver right?");
            return vec![Finding::wrong(about, why).so(advice)];
        }
    };
    let device = match &standing.account.device {
        Some(device) => format!("device {device}"),
        None => "no device yet: the gateway makes it when it starts".to_owned(),
    };
    let mut findings = vec![Finding::ok(&*about, format!("{}, {device}", bots::matrix(&standing.account)))];
    findings.extend(standing.is_signed.map(|is_signed| signed(&about, is_signed)));
    findings
}

fn signed(about: &str, is_signed: bool) -> Finding {
    if is_signed {
        return Finding::ok(about, "the account has signed its device");
    }
    let advice = format!("Set channels.{about}.recovery_key and restart: docs/matrix.md, \"Encryption\".");
    Finding::warning(about, "the account has not signed its device: clients show a warning beside what it says")
        .so(advice)
}
