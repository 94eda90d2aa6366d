//! Many conversations at once.

use rejoinder_matrix_server::Homeserver;
use rejoinder_tests::ScriptedAgent;

use crate::{QUIET, patient};

/// B11, E4, E6: fifty concurrent rooms are each answered once, in order, while one of them floods.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_rooms_at_once_are_each_answered_once() {
    const ROOMS: usize = 50;
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::echoing().await);
    let (builder, user) = patient(&agent, QUIET).await;
    let gateway = builder.start().await;
    let ada = homeserver.person("ada").await;
    let mut rooms = Vec::new();
    for _ in 0..ROOMS {
        rooms.push(ada.direct(&user).await);
    }
    let (flood, rooms) = rooms.split_last().expect("there are rooms");

    for n in 0..30 {
        ada.says(flood, &format!("flood {n}")).await;
    }
    for room in rooms {
        ada.says(room, "one").await;
        ada.says(room, "two").await;
    }
    for room in rooms {
        ada.until_hears(room, &user, 2).await;
    }
    ada.until_hears(flood, &user, 30).await;
    gateway.until_settled().await;

    for room in rooms {
        assert_eq!(ada.hears(room, &user).await, ["echo one", "echo two"]);
    }
    let expected: Vec<_> = (0..30).map(|n| format!("echo flood {n}")).collect();
    assert_eq!(ada.hears(flood, &user).await, expected);
}
