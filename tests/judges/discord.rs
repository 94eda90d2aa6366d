//! serenity and discord.py check the Discord server.

mod client;
mod connecting;
mod discord_py;
mod failing;
mod interacting;
mod talking;
