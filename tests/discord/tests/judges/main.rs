//! The server is judged by clients that are not ours: serenity, discord.py, and a bare WebSocket.

mod bare;
mod client;
mod connecting;
mod discord_py;
mod ending;
mod failing;
mod gateway;
mod interacting;
mod talking;
