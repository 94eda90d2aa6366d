"""People who ask again as soon as they are answered, so that a benchmark measures only the bot."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from . import people
from .world import World


async def converse(world: World, given: dict[str, Any]) -> list[float]:
    """Let everybody ask for ``seconds`` after a ``warm_up``. Returns the measured waits, in milliseconds."""
    loop = asyncio.get_running_loop()
    crowd = {str(each["channel_id"]): each for each in given["from"]}
    measured_from = time.perf_counter() + float(given.get("warm_up", 0))
    until = measured_from + float(given["seconds"])
    asked: dict[str, float] = {}
    waits: list[float] = []

    def ask(channel_id: str) -> None:
        asked[channel_id] = time.perf_counter()
        people.says(world, {**crowd[channel_id], "content": given["content"]})

    def heard(event: str, payload: Mapping[str, Any]) -> None:
        if event != "MESSAGE_CREATE" or payload["author"]["id"] != str(world.bot_user.id):
            return
        channel_id, now = payload["channel_id"], time.perf_counter()
        if (since := asked.pop(channel_id, None)) is None or now > until:
            return
        if since >= measured_from:
            waits.append((now - since) * 1000)
        # Later, so that the bot's call gets its response first.
        loop.call_soon(ask, channel_id)

    world.subscribers.append(heard)
    try:
        for channel_id in crowd:
            ask(channel_id)
        await asyncio.sleep(until - time.perf_counter())
    finally:
        world.subscribers.remove(heard)
    return waits
