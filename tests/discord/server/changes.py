"""Waiting for changes."""

from __future__ import annotations

import asyncio


class Changes:
    """A revision that grows with every change, and the tasks that wait for it."""

    def __init__(self) -> None:
        """Start at 0."""
        self.revision = 0
        self._waiting: set[asyncio.Future[None]] = set()

    def happened(self) -> None:
        """Count a change, and wake all waiting tasks."""
        self.revision += 1
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._waiting.clear()

    async def after(self, revision: int, seconds: float) -> int:
        """Wait for a later revision, for at most ``seconds``."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while self.revision <= revision and (left := end - loop.time()) > 0:
            waiter = loop.create_future()
            self._waiting.add(waiter)
            await asyncio.wait({waiter}, timeout=left)
            self._waiting.discard(waiter)
        return self.revision
