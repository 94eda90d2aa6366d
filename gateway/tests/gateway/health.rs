//! Health and metrics.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::StatusCode;

use crate::support::{TestGateway, json_of};

/// D17.
#[tokio::test]
async fn it_is_ready_when_the_store_writes_and_every_channel_is_live() {
    let gateway = TestGateway::start().await;

    let response = gateway.get("/readyz").send().await.unwrap();

    assert_eq!(response.status(), StatusCode::OK);
    let readiness = json_of(response).await;
    assert_eq!((&readiness["status"], &readiness["store"]["writes"]), (&"ready".into(), &true.into()));
    assert_eq!(readiness["channels"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn it_is_alive() {
    let gateway = TestGateway::start().await;

    let response = gateway.get("/healthz").send().await.unwrap();

    assert_eq!((response.status(), response.text().await.unwrap().as_str()), (StatusCode::OK, "ok\n"));
}

/// Every sample has a help text, a type, and our prefix or that of the process.
#[tokio::test]
async fn every_metric_is_described() {
    let gateway = TestGateway::start().await;
    gateway.ask_for_answer("test", "hello").await;

    let text = gateway.get("/metrics").send().await.unwrap().text().await.unwrap();

    let (mut helps, mut types) = (BTreeSet::new(), BTreeMap::new());
    for line in text.lines() {
        let words: Vec<_> = line.splitn(4, ' ').collect();
        match words[..] {
            ["#", "HELP", name, help] => {
                assert!(!help.is_empty(), "{line}");
                assert!(helps.insert(name), "{name} is described twice");
            }
            ["#", "TYPE", name, kind] => assert!(types.insert(name, kind).is_none(), "{name} has two types"),
            _ if line.is_empty() => {}
            _ => {
                let sample = line.split(['{', ' ']).next().unwrap();
                let family = types.iter().find(|(name, kind)| {
                    let rest = sample.strip_prefix(**name);
                    rest == Some("") || (**kind == "histogram" && matches!(rest, Some("_bucket" | "_sum" | "_count")))
                });
                let (name, _) = family.unwrap_or_else(|| panic!("{sample} has no type"));
                let is_named_well = name.starts_with("rejoinder_") || name.starts_with("process_");
                assert!(is_named_well && helps.contains(name), "{sample} is not described");
            }
        }
    }
    for name in
        ["rejoinder_open_turns", "rejoinder_undeliverable_turns", "rejoinder_channel_up", "rejoinder_build_info"]
    {
        assert_eq!(types.get(name), Some(&"gauge"), "{text}");
    }
    assert!(text.contains("rejoinder_open_turns 0\n"), "{text}");
    assert!(text.contains("rejoinder_channel_up{channel=\"webhook.test\"} 1\n"), "{text}");
}
