"""A bot on discord.py that tests the server. Arguments: API_URL GATEWAY_URL TOKEN GUILD_ID."""

from __future__ import annotations

import io
import sys

import discord
import yarl
from discord import app_commands
from discord.gateway import DiscordWebSocket
from discord.http import Route

API_URL, GATEWAY_URL, TOKEN, GUILD_ID = sys.argv[1:]


class Buttons(discord.ui.View):
    """A question with one button."""

    @discord.ui.button(label="Yes")
    async def yes(self, interaction: discord.Interaction, button: discord.ui.Button) -> None:
        """Replace the question by the answer."""
        await interaction.response.edit_message(content=f"You said {button.label}", view=None)


class Bot(discord.Client):
    """A bot that executes the commands in messages, each of which tests a part of the API."""

    def __init__(self) -> None:
        """Request the message content intent."""
        intents = discord.Intents.default()
        intents.message_content = True
        super().__init__(intents=intents)
        self.tree = app_commands.CommandTree(self)
        self.channel: discord.abc.Messageable | None = None

    async def setup_hook(self) -> None:
        """Register the command."""
        await self.tree.sync(guild=discord.Object(int(GUILD_ID)))

    async def on_message(self, message: discord.Message) -> None:
        """Execute the command in a person's message."""
        if message.author.bot or not message.content:
            return
        if message.guild is not None:
            self.channel = message.channel
        word = message.content.split()[-1]
        if word == "buttons":
            await message.reply("Are you sure?", view=Buttons())
        elif word == "file":
            data = await message.attachments[0].read()
            await message.channel.send(file=discord.File(io.BytesIO(data), "back.txt"))
            await message.add_reaction("👍")
        elif word == "thread":
            thread = await message.create_thread(name="A thread")
            async with thread.typing():
                await thread.send("in the thread")
        elif word == "forbidden":
            try:
                await self.channel.send("no")
            except discord.Forbidden as error:
                await message.channel.send(f"Forbidden {error.code}")
        elif word == "bye":
            await self.close()


bot = Bot()


@bot.tree.command(name="ask", description="Ask", guild=discord.Object(int(GUILD_ID)))
async def ask(interaction: discord.Interaction, text: str) -> None:
    """Defer the response to a command, then answer it."""
    await interaction.response.defer()
    await interaction.followup.send(f"{text} Yes.")


Route.BASE = f"{API_URL}/api/v10"
DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(GATEWAY_URL)
bot.run(TOKEN)
