//! `rejoinder dashboard`: a link that opens the operator's page.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use anyhow::Context;
use clap::Args;
use qrcode::{QrCode, render::unicode::Dense1x2};
use rejoinder_config::Config;
use serde_json::json;

use super::{global::Global, running::RunningGateway};
use crate::{
    console::{failure::Failure, output},
    wiring,
};

#[derive(Debug, Args)]
pub(super) struct Dashboard {
    /// Draw the link as a QR code, for the camera of a phone
    #[arg(long)]
    qr: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "qr")]
    json: bool,
}

impl Dashboard {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let gateway = RunningGateway::find(global)?;
        let made = gateway.post("links", &json!({})).await?;
        let path = made["path"].as_str().unwrap_or_default();
        let local = format!("{}{path}", gateway.url());
        let elsewhere = address_for_others(&global.load()?.config, gateway.url(), own_address);
        let url = elsewhere.as_ref().map_or_else(|| local.clone(), |address| format!("{address}{path}"));
        if self.json {
            return output::print_json(&json!({ "url": url, "local_url": local, "expires_at": made["expires_at"] }));
        }
        match &elsewhere {
            None => output::remark("Open this link in a browser on this machine. It works once, for ten minutes:"),
            Some(_) => output::remark(format_args!(
                "Open this link in a browser. It works once, for ten minutes; on this machine also as {local}"
            )),
        }
        output::print(&url)?;
        if !self.qr {
            return Ok(());
        }
        if elsewhere.is_none() {
            output::remark("A phone does not reach this address: docs/phone.md says what to do.");
        }
        let code = QrCode::new(&url).context("the link does not fit into a QR code")?;
        output::print(code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build())
    }
}

/// Where others reach the operator's page of the gateway at `local`; `None` if only this machine does.
fn address_for_others(config: &Config, local: &str, own_address: impl FnOnce() -> Option<IpAddr>) -> Option<String> {
    if let (Some(url), None) = (&config.server.public_url, config.admin.listen) {
        return Some(url.as_str().trim_end_matches('/').to_owned());
    }
    let listen = wiring::listen_for_operator(config).ip();
    if listen.is_loopback() {
        return None;
    }
    if !listen.is_unspecified() {
        return Some(local.to_owned());
    }
    let port = local.strip_prefix("http://")?.parse::<SocketAddr>().ok()?.port();
    Some(format!("http://{}", SocketAddr::new(own_address()?, port)))
}

/// The address of this machine in its network: the one from which it would reach others. Sends nothing.
fn own_address() -> Option<IpAddr> {
    let from = |socket: &str, to: &str| {
        let socket = UdpSocket::bind(socket).ok()?;
        socket.connect(to).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    // Addresses for documentation (RFC 5737, RFC 3849).
    let found = from("0.0.0.0:0", "192.0.2.1:9").or_else(|| from("[::]:0", "[2001:db8::1]:9"));
    found.filter(|address| !address.is_loopback() && !address.is_unspecified())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::wiring::tests::config;

    #[rstest]
    #[case::loopback("", None)]
    #[case::all_addresses("[server]\nlisten = \"0.0.0.0:7420\"", Some("http://192.168.1.7:7420"))]
    #[case::one_address("[server]\nlisten = \"10.0.0.1:7420\"", Some("http://127.0.0.1:7420"))]
    #[case::public("[server]\npublic_url = \"https://rejoinder.example.org/\"", Some("https://rejoinder.example.org"))]
    #[case::a_page_elsewhere(
        "[server]\npublic_url = \"https://rejoinder.example.org\"\n[admin]\nlisten = \"0.0.0.0:7420\"",
        Some("http://192.168.1.7:7420")
    )]
    fn the_link_leads_to_where_others_reach_the_page(#[case] toml: &str, #[case] address: Option<&str>) {
        let channel = "[channels.webhook.default]\ntoken = \"token-of-these-tests\"\n";
        let config = config(&format!("{channel}{toml}\n"));

        let own = || Some("192.168.1.7".parse().unwrap());
        assert_eq!(address_for_others(&config, "http://127.0.0.1:7420", own).as_deref(), address);
    }
}
