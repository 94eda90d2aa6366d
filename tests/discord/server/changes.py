"""Waiting for something to have changed."""

from __future__ import annotations

import asyncio


class Changes:
    """A number that grows with every change, and those who wait for it to."""

    def __init__(self) -> None:
        """Start at 0."""
        self.revision = 0
        self._waiting: set[asyncio.Future[None]] = set()

    def happened(self) -> None:
        """Something changed: whoever waits looks again."""
        self.revision += 1
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._waiting.clear()

    async def after(self, revision: int, seconds: float) -> int:
        """Wait until there is a later revision, but not longer than ``seconds``."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while self.revision <= revision and (left := end - loop.time()) > 0:
            waiter = loop.create_future()
            self._waiting.add(waiter)
            await asyncio.wait({waiter}, timeout=left)
            self._waiting.discard(waiter)
        return self.revision
