//! The tools of runs, and where agents reach them.

use std::sync::Arc;

use axum::Router;
use rejoinder_agents::SessionTokens;
use rejoinder_config::Config;
use rejoinder_core::AgentRuntime;
use rejoinder_kit::Guesses;
use rejoinder_mcp::{PATH, RouteSettings, Runs, WithTools};
use tokio_util::sync::CancellationToken;
use url::{Host, Url};

use super::caller::Caller;

/// The tools of a gateway; none of one that is not served.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnTools(Option<Served>);

#[derive(Clone, Debug)]
struct Served {
    /// Without a trailing slash.
    local_url: String,
    /// Where agents on other machines reach this node.
    url_from_elsewhere: Option<Url>,
    runs: Arc<Runs>,
}

impl OwnTools {
    /// Those of a gateway that is served at `local_url`.
    pub(crate) fn served(local_url: String, config: &Config) -> Self {
        let url_from_elsewhere = config.server.node_url.as_ref().or(config.server.public_url.as_ref()).cloned();
        Self(Some(Served { local_url, url_from_elsewhere, runs: Arc::default() }))
    }

    /// `agent`, whose runs have tools if its section wants them.
    #[expect(clippy::unnecessary_wraps, reason = "a build without tools refuses")]
    pub(crate) fn given_to(
        &self,
        agent: Arc<dyn AgentRuntime>,
        is_wanted: bool,
        caller: Caller<'_>,
    ) -> Result<Arc<dyn AgentRuntime>, String> {
        let Some(served) = self.0.as_ref().filter(|_| is_wanted) else { return Ok(agent) };
        let url = [served.base_url(caller), PATH].concat();
        Ok(Arc::new(WithTools::new(agent, Arc::clone(&served.runs), &url)))
    }

    /// What gives tokens to sessions that outlive their runs.
    pub(crate) fn session_tokens(&self) -> Option<Arc<dyn SessionTokens>> {
        self.0.as_ref().map(|served| Arc::clone(&served.runs) as Arc<dyn SessionTokens>)
    }

    pub(crate) fn routes(&self, config: &Config, guesses: &Arc<Guesses>, stop: &CancellationToken) -> Option<Router> {
        let served = self.0.as_ref()?;
        Some(rejoinder_mcp::routes(RouteSettings {
            runs: Arc::clone(&served.runs),
            guesses: Arc::clone(guesses),
            body_timeout: config.server.request_timeout,
            origins: config.server.public_url.iter().map(|url| url.origin().ascii_serialization()).collect(),
            stop_waiting: stop.clone(),
        }))
    }
}

impl Served {
    /// The gateway's URL for an agent, without a trailing slash: the local one if it is on this machine.
    fn base_url(&self, caller: Caller<'_>) -> &str {
        let is_here = match caller {
            Caller::Here => true,
            Caller::At(url) => is_loopback(url),
            Caller::Anywhere => false,
        };
        let from_elsewhere = self.url_from_elsewhere.as_ref().filter(|_| !is_here);
        from_elsewhere.map_or(&*self.local_url, |url| url.as_str().trim_end_matches('/'))
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_config::testing::Machine;

    use super::*;

    const PUBLIC: &str = "public_url = \"https://chat.example.org/\"";

    fn served(server: &str) -> Served {
        let hook = "[channels.webhook.default]\ntoken = \"token-of-these-tests\"\n";
        let machine = Machine::of(crate::build()).with_file("rejoinder.toml", &format!("{hook}[server]\n{server}\n"));
        OwnTools::served("http://127.0.0.1:7420".to_owned(), &machine.config()).0.unwrap()
    }

    #[test]
    fn only_agents_elsewhere_go_through_the_proxy() {
        let url = |url: &str| url.parse::<Url>().unwrap();
        let (local, public) = (served(""), served(PUBLIC));

        assert_eq!(local.base_url(Caller::Anywhere), "http://127.0.0.1:7420");
        assert_eq!(public.base_url(Caller::Anywhere), "https://chat.example.org");
        assert_eq!(public.base_url(Caller::At(&url("https://agent.example.org/turns"))), "https://chat.example.org");
        let here = ["http://localhost:8080", "http://127.0.0.2/x", "http://[::1]:1"].map(url);
        for caller in here.iter().map(Caller::At).chain([Caller::Here]) {
            assert_eq!(public.base_url(caller), "http://127.0.0.1:7420", "{caller:?}");
        }
    }

    /// A proxy before several nodes does not know which one runs the turn.
    #[test]
    fn agents_elsewhere_reach_this_node_alone_if_it_has_a_url() {
        let served = served(&format!("{PUBLIC}\nnode_url = \"http://one.internal:7420/\""));

        assert_eq!(served.base_url(Caller::Anywhere), "http://one.internal:7420");
        assert_eq!(served.base_url(Caller::Here), "http://127.0.0.1:7420");
    }
}
