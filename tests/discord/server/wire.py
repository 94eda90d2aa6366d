"""Details that strict clients require: fields that SimCord leaves out, and the exact form of responses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

_GUILD = {
    "nsfw_level": 0,
    "nsfw": False,
    "premium_progress_bar_enabled": False,
    "safety_alerts_channel_id": None,
    "widget_enabled": False,
}


def guild(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Complete a guild, as GUILD_CREATE and ``GET /guilds/{id}`` contain it."""
    return {**_GUILD, **payload}


def partial_guild(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Reduce a guild to what ``GET /users/@me/guilds`` lists."""
    kept = {key: payload[key] for key in ("id", "name", "icon", "banner", "features")}
    return {**kept, "owner": False, "permissions": "0"}


def command(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Complete an application command."""
    return {"nsfw": False, "version": payload["id"], **payload}


def answer(body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """Respond in JSON without a charset in the content type, which discord.py does not accept."""
    data = json.dumps(body).encode()
    return web.Response(body=data, status=status, headers=headers, content_type="application/json")
