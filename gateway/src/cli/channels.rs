//! `rejoinder channels`: the channels of the running gateway, and that one is tried now.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::{
    global::Global,
    listing::{table, text},
    options::{Printing, Reason},
    running::RunningGateway,
};
use crate::console::{failure::Failure, output};

#[derive(Debug, Subcommand)]
pub(super) enum ChannelsCommand {
    /// List the channels of the running gateway: whether each receives and sends
    List(Printing),
    /// Try now to send what waits for a channel, for example when its platform is back
    #[command(after_help = "Example:\n  rejoinder channels try telegram.main")]
    Try(Try),
}

#[derive(Debug, Args)]
pub(super) struct Try {
    /// The channel, for example telegram.main
    channel: String,
    #[command(flatten)]
    why: Reason,
}

impl ChannelsCommand {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let gateway = RunningGateway::find(global)?;
        match self {
            Self::List(printing) => printing.print_from(&gateway, "channels", lines).await,
            Self::Try(Try { channel, why }) => {
                gateway.act("channels", channel, "try", why).await?;
                output::print("What waits is tried now.")
            }
        }
    }
}

fn lines(list: &Value) -> String {
    let row = |channel: &Value| {
        let does = |name: &str| if channel[name] == true { "yes" } else { "no" }.to_owned();
        [text(&channel["channel"]), does("live"), does("sends"), output::excerpt(&text(&channel["problem"]), 100)]
    };
    table(list, ("No channel is configured.", ""), ["CHANNEL", "RECEIVES", "SENDS", "WHAT IS WRONG"], row)
}
