"""The actions of people in Discord, without checks of tokens or permissions."""

from __future__ import annotations

from typing import Any

from simcord import interactions
from simcord.backend import permissions, serializers
from simcord.backend.models import (
    Channel,
    Guild,
    Interaction,
    Message,
    MessageSticker,
    Overwrite,
    User,
)
from simcord.components import walk_components
from simcord.enums import AppCommandType, ChannelType, InteractionType, MessageType, OverwriteType

from .world import HAS_THREAD, World

CHANNEL_TYPES = {"text": ChannelType.TEXT, "announcement": ChannelType.NEWS, "forum": ChannelType.FORUM}

#: The flag of a voice message.
_VOICE = 1 << 13

_BUTTON = 2
_LINK = 5


def found_guild(world: World, name: str) -> tuple[Guild, int]:
    """Create a guild that the bot is in. Returns it and the bot's role."""
    guild = world.create_guild(name)
    bot_role = next(role.id for role in guild.roles.values() if role.managed)
    return guild, bot_role


def open_channel(world: World, guild_id: int, name: str, kind: str) -> Channel:
    """Create a channel in a guild."""
    if kind not in CHANNEL_TYPES:
        raise ValueError(f"there is no channel type `{kind}`: there are {', '.join(CHANNEL_TYPES)}")
    return world.create_channel(guild_id, name, type=CHANNEL_TYPES[kind])


def is_born(world: World, name: str, *, bot: bool) -> User:
    """Create a user with the display name ``name``, and its lower case as user name."""
    return world.make_user(name.lower().replace(" ", "_"), global_name=name, bot=bot)


def joins(world: World, user_id: int, guild_id: int | None) -> None:
    """Ensure that a user is a member of a guild."""
    if guild_id is not None and user_id not in world.get_guild(guild_id).members:
        world.add_member(guild_id, user_id, announce=True)


def says(world: World, given: dict[str, Any]) -> Message:
    """Send a message to a channel."""
    channel = world.get_channel(int(given["channel_id"]))
    user_id = int(given["user_id"])
    joins(world, user_id, channel.guild_id)
    files = [(file["name"], bytes.fromhex(file["hex"])) for file in given.get("files", [])]
    reference = None
    if (replied := given.get("reply_to")) is not None:
        reference = {"type": 0, "message_id": str(replied), "channel_id": str(channel.id)}
    stickers = None
    if (sticker := given.get("sticker")) is not None:
        stickers = [MessageSticker(world.snowflake(), sticker, 1, channel.guild_id or 0)]
    attachments = world.store_attachments(channel.id, files)
    if (seconds := given.get("voice")) is not None:
        attachments[0] |= {"content_type": "audio/ogg", "duration_secs": seconds, "waveform": "AAAA"}
    return world.create_message(
        channel.id,
        user_id,
        given.get("content", ""),
        flags=_VOICE if seconds is not None else 0,
        attachments=attachments or None,
        reference=reference,
        stickers=stickers,
        webhook_id=world.snowflake() if given.get("webhook") else None,
    )


def unfurls(world: World, channel_id: int, message_id: int) -> None:
    """Add a link preview as Discord does: an update of a message that nobody edited."""
    message = world.get_message(channel_id, message_id)
    message.embeds = [{"type": "link", "url": "https://example.org/", "title": "Example"}]
    world.emit("MESSAGE_UPDATE", dict(serializers.message_payload(world, message)))


def types(world: World, channel_id: int, user_id: int) -> None:
    """Send a typing notice."""
    channel = world.get_channel(channel_id)
    joins(world, user_id, channel.guild_id)
    event: dict[str, Any] = {
        "channel_id": str(channel_id),
        "user_id": str(user_id),
        "timestamp": int(world.clock.now().timestamp()),
    }
    if channel.guild_id is not None:
        guild = world.get_guild(channel.guild_id)
        event["guild_id"] = str(guild.id)
        event["member"] = serializers.member_payload(world, guild, guild.members[user_id])
    world.emit("TYPING_START", event)


def start_thread(world: World, message: Message, name: str, owner_id: int, archive_after: int = 1440) -> Channel:
    """Start a thread from a message."""
    thread = world.create_thread(
        message.channel_id,
        name,
        owner_id,
        message_id=message.id,
        auto_archive_duration=archive_after,
        broadcast=False,
    )
    message.flags |= HAS_THREAD
    world.announce_thread_create(thread)
    world.emit("MESSAGE_UPDATE", dict(serializers.message_payload(world, message)))
    # Discord's first message in such a thread is empty and refers to the original message.
    starter = world.prepare_message(thread.id, message.author_id, "-", message_type=MessageType.THREAD_STARTER_MESSAGE)
    starter.content = ""
    starter.reference = {"type": 0, "channel_id": str(message.channel_id), "message_id": str(message.id)}
    world.commit_message(starter)
    return thread


def opens_thread(world: World, given: dict[str, Any]) -> tuple[Channel, Message | None]:
    """Open a thread: from a message, without one, or as a post in a forum."""
    parent = world.get_channel(int(given["channel_id"]))
    user_id, name = int(given["user_id"]), given["name"]
    joins(world, user_id, parent.guild_id)
    if parent.type == ChannelType.FORUM:
        return posts(world, parent, user_id, name, given["content"])
    if (message_id := given.get("message_id")) is not None:
        return start_thread(world, world.get_message(parent.id, int(message_id)), name, user_id), None
    kind = ChannelType.PRIVATE_THREAD if given.get("private") else ChannelType.PUBLIC_THREAD
    thread = world.create_thread(parent.id, name, user_id, type=kind)
    return thread, None


def posts(world: World, forum: Channel, user_id: int, name: str, content: str) -> tuple[Channel, Message]:
    """Create a forum post: a thread, and a first message with the same id."""
    thread = world.create_thread(forum.id, name, user_id, broadcast=False)
    world.announce_thread_create(thread)
    message = world.prepare_message(thread.id, user_id, content)
    message.id = thread.id
    world.commit_message(message)
    forum.last_message_id = thread.id
    return thread, message


def archives(world: World, thread_id: int, *, archived: bool, locked: bool) -> None:
    """Archive or unarchive a thread."""
    world.edit_channel(thread_id, {}, thread_metadata={"archived": archived, "locked": locked})


def command(world: World, name: str, guild_id: int | None) -> dict[str, Any] | None:
    """Find a slash command as a user in a guild, or in a direct chat, would."""
    return world.find_command(name, guild_id)


def uses(world: World, channel_id: int, user_id: int, used: dict[str, Any], options: dict[str, Any]) -> Interaction:
    """Use a slash command."""
    channel = world.get_channel(channel_id)
    joins(world, user_id, channel.guild_id)
    declared = {option["name"]: option for option in used.get("options") or []}
    if unknown := options.keys() - declared.keys():
        raise ValueError(f"/{used['name']} has no option `{', '.join(sorted(unknown))}`")
    if missing := [name for name, each in declared.items() if each.get("required") and name not in options]:
        raise ValueError(f"/{used['name']} needs the option `{', '.join(missing)}`")
    given = [
        {
            "name": name,
            "type": declared[name]["type"],
            "value": interactions.validate_option_value(used["name"], declared[name], value),
        }
        for name, value in options.items()
    ]
    data = {"id": used["id"], "name": used["name"], "type": AppCommandType.CHAT_INPUT, "options": given}
    if used.get("guild_id") is not None:
        data["guild_id"] = used["guild_id"]
    record, payload = interactions.base_payload(
        world,
        type=InteractionType.APPLICATION_COMMAND,
        channel_id=channel_id,
        guild_id=channel.guild_id,
        user_id=user_id,
        data=data,
    )
    world.emit("INTERACTION_CREATE", payload)
    return record


def clicks(world: World, channel_id: int, user_id: int, message_id: int, custom_id: str) -> Interaction:
    """Press a button that exists and is enabled."""
    channel = world.get_channel(channel_id)
    joins(world, user_id, channel.guild_id)
    message = world.get_message(channel_id, message_id)
    there = buttons(message)
    if not any(each.get("custom_id") == custom_id and not each.get("disabled") for each in there):
        raise ValueError(f"no button `{custom_id}` can be pressed: there are {there}")
    record, payload = interactions.base_payload(
        world,
        type=InteractionType.MESSAGE_COMPONENT,
        channel_id=channel_id,
        guild_id=channel.guild_id,
        user_id=user_id,
        data={"custom_id": custom_id, "component_type": _BUTTON},
    )
    record.source_message_id = message.id
    payload["message"] = dict(serializers.message_payload(world, message))
    world.emit("INTERACTION_CREATE", payload)
    return record


def buttons(message: Message) -> list[dict[str, Any]]:
    """List the buttons of a message that send an interaction to the bot."""
    return [
        component
        for component in walk_components(message.components)
        if component.get("type") == _BUTTON and component.get("style") != _LINK
    ]


def permits(world: World, channel_id: int, allow: list[str], deny: list[str]) -> None:
    """Set the bot's permission overwrites in a channel."""
    channel = world.get_channel(channel_id)
    target = world.get_channel(channel.permission_channel_id())
    world.set_overwrite(
        target.id,
        Overwrite(
            target_id=world.bot_user.id,
            type=OverwriteType.MEMBER,
            allow=sum(permissions.flag(name) for name in allow),
            deny=sum(permissions.flag(name) for name in deny),
        ),
    )


def kicks(world: World, guild_id: int) -> None:
    """Remove the bot from a guild."""
    guild = world.get_guild(guild_id)
    guild.members.pop(world.bot_user.id, None)
    world.emit("GUILD_DELETE", {"id": str(guild_id)})
