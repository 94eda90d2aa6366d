//! The Discord server is judged by serenity and discord.py.

mod client;
mod connecting;
mod discord_py;
mod failing;
mod interacting;
mod talking;
