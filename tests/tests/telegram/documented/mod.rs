//! What the documents tell people to type works as it is written.

mod blocks;
mod world;

use std::collections::HashSet;

use self::{
    blocks::{Documented, blocks, mentioned, pages, to_be_parsed},
    world::World,
};

/// Lines that are not run, each by a part of it, and why. Their calls of `rejoinder` are parsed all the same.
const NOT_RUN: [(&str, &str); 17] = [
    ("$REPOSITORY", "there is no release"),
    ("service install", "needs systemd"),
    ("docker compose", "needs Docker"),
    ("discord.com", "calls Discord"),
    ("matrix.example.org", "calls a homeserver"),
    ("15 3 * * *", "is a line of a crontab"),
    ("sudo rejoinder restore", "needs root, and a service that is stopped"),
    ("rejoinder init        #", "asks questions: the tests of init answer them"),
    ("rejoinder             #", "is the gateway itself"),
    ("rejoinder run --data", "is the gateway itself"),
    ("rejoinder chat", "needs a terminal"),
    ("rejoinder import", "reads what another gateway has: the tests of import run it"),
    ("age -d", "needs the program `age`: the tests of workers open sealed answers with its library"),
    ("tools/call", "needs the token of a run: the tests of MCP call tools so"),
    ("--option 1", "needs an agent that offers options of its own: a test of a coding agent's options runs it"),
    ("store copy", "needs a PostgreSQL server: the store's tests copy from and to one"),
    ("rejoinder doctor --fix", "repairs what is broken: the tests of doctor break it"),
];

fn reason(command: &Documented) -> Option<&'static str> {
    let is_meant = |part: &&(&str, &str)| command.text.contains(part.0);
    NOT_RUN.iter().find(is_meant).map(|(_, why)| *why)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_command_that_is_documented_works() {
    let world = World::start().await;
    let mut commands: Vec<Documented> = Vec::new();
    for (page, text) in pages() {
        let shell = blocks(&page, &text).into_iter().filter(blocks::Block::is_shell);
        commands.extend(shell.flat_map(|block| block.commands()));
    }
    // Who is let in there is written to on other pages.
    commands.sort_by_key(|command| command.page != "people.md");
    let mut failures = Vec::new();
    for command in commands.iter().filter(|command| reason(command).is_none()) {
        if let Err(why) = world.run(command).await {
            failures.push(format!("{command}\n    {why}"));
        }
    }
    world.end();

    assert!(failures.is_empty(), "{} of {} fail:\n{}", failures.len(), commands.len(), failures.join("\n"));
    let unused: Vec<_> =
        NOT_RUN.iter().filter(|(part, _)| !commands.iter().any(|command| command.text.contains(part))).collect();
    assert!(unused.is_empty(), "no document has these any more: {unused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_command_that_is_mentioned_exists() {
    let world = World::prepare();
    let mut seen = HashSet::new();
    let mut failures = Vec::new();
    for (page, text) in pages() {
        let shell = blocks(&page, &text).into_iter().filter(blocks::Block::is_shell);
        let unrun = shell.flat_map(|block| block.commands()).filter(|command| reason(command).is_some());
        for command in mentioned(&page, &text).into_iter().chain(unrun) {
            for call in to_be_parsed(&command.text) {
                if seen.insert(call.clone())
                    && let Err(why) = world.shell(&call, &[])
                {
                    failures.push(format!("{command}\n    {why}"));
                }
            }
        }
    }

    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(seen.len() > 50, "{seen:?}");
}

#[test]
fn every_configuration_that_is_documented_is_valid() {
    let mut failures = Vec::new();
    let mut count = 0;
    for (page, text) in pages() {
        for block in blocks(&page, &text).into_iter().filter(|block| block.language == "toml") {
            count += 1;
            if let Err(why) = world::check_config(&block.text) {
                failures.push(format!("{page}:{}: {why}", block.line));
            }
        }
    }

    assert!(failures.is_empty(), "{} of {count} are invalid:\n{}", failures.len(), failures.join("\n"));
    assert!(count > 40, "{count}");
}
