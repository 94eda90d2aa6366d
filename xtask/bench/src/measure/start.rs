//! The first start with an empty folder: schema, listener, first turn.

use anyhow::Result;

use crate::{
    bench::Bench,
    figures::{Sample, Target, Unit},
    gateway::Home,
    helper::Helper,
    serve::Server,
};

pub(super) async fn round(bench: &Bench) -> Result<Vec<Sample>> {
    let agent = Helper::start(&Server::Agent { stall: false }).await?;
    let home = Home::new(bench)?;
    let mut gateway = home.start(bench, &agent.agent_url(), "")?;
    let took = gateway.first_answer().await?;
    Ok(vec![Sample::with_target(
        "first start to first answer",
        took.as_secs_f64() * 1000.0,
        Unit::Milliseconds,
        Target::AtMost(300.0),
    )])
}
