//! The server's process: one of its own for each test, also when it is a fork.

use rejoinder_discord_server::DiscordServer;

#[tokio::test]
async fn the_server_ends_with_its_test() {
    let server = DiscordServer::start().await;
    let address = server.api_url().trim_start_matches("http://").to_owned();
    tokio::net::TcpStream::connect(&address).await.expect("the server listens");

    drop(server);

    while tokio::net::TcpStream::connect(&address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn each_server_has_an_address_and_a_secret_of_its_own() {
    let (one, other) = tokio::join!(DiscordServer::start(), DiscordServer::start());

    assert_ne!(one.api_url(), other.api_url());
    assert_ne!(one.token(), other.token());
}
