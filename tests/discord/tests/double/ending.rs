//! The server's process.

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
