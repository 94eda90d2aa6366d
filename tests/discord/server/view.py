"""The visible state of channels."""

from __future__ import annotations

from typing import Any

from simcord.backend.models import Interaction, Message

from .people import buttons
from .world import SUPPRESS_EMBEDS, World

#: LOADING, the flag of a message that shows "is thinking".
_LOADING = 1 << 7


def channel(world: World, channel_id: int, viewer: int | None) -> list[dict[str, Any]]:
    """List the messages of a channel, oldest first: all, or those visible to ``viewer``."""
    messages = sorted(world.messages.get(channel_id, {}).values(), key=lambda each: each.id)
    return [message(world, each) for each in messages if viewer is None or each.visible_to(viewer)]


def message(world: World, shown: Message) -> dict[str, Any]:
    """Describe a message."""
    author = world.users[shown.author_id]
    reply_to = None
    if shown.reference is not None and shown.reference.get("type", 0) == 0:
        reply_to = shown.reference.get("message_id")
    ephemeral_to = None
    if shown.is_ephemeral and shown.interaction_metadata is not None:
        ephemeral_to = shown.interaction_metadata["user"]["id"]
    return {
        "id": str(shown.id),
        "channel_id": str(shown.channel_id),
        "kind": shown.type,
        "author": shown.author_name or author.global_name or author.name,
        "author_id": str(author.id),
        "ours": author.id == world.bot_user.id,
        "content": shown.content,
        "versions": world.versions.get(shown.id, [shown.content]),
        "edited": shown.edited_timestamp is not None,
        "reply_to": reply_to,
        "loading": bool(shown.flags & _LOADING),
        "ephemeral_to": ephemeral_to,
        "embeds_suppressed": bool(shown.flags & SUPPRESS_EMBEDS),
        "nonce": None if (nonce := world.nonces.get(shown.id)) is None else str(nonce),
        "pings": [str(user) for user in shown.ping_user_ids],
        "pings_everyone": shown.mention_everyone,
        "thread": str(shown.id) if shown.id in world.channels else None,
        "reactions": [
            {
                "emoji": each.emoji,
                "by": [str(user) for user in each.user_ids],
                "ours": world.bot_user.id in each.user_ids,
            }
            for each in shown.reactions
            if each.user_ids
        ],
        "attachments": [
            {"name": each["filename"], "url": each["url"], "size": each["size"], "content_type": each["content_type"]}
            for each in shown.attachments
        ],
        "buttons": [
            {"label": each.get("label") or "", "custom_id": each["custom_id"], "disabled": bool(each.get("disabled"))}
            for each in buttons(shown)
        ],
    }


def interaction(world: World, record: Interaction) -> dict[str, Any]:
    """Describe the state of an interaction."""
    return {
        "interaction_id": str(record.id),
        "acknowledged": record.responded,
        "response": None if record.response_kind is None else str(record.response_kind),
        "message_id": None if record.message_id is None else str(record.message_id),
        "ephemeral": record.ephemeral,
        # The person sees "This interaction failed".
        "failed": not record.responded and world.now_iso() >= (record.initial_response_deadline or ""),
    }
