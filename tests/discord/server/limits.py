"""Rate limits, their headers, and the count of invalid requests."""

from __future__ import annotations

import hashlib
import math
import re
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from . import wire
from .faults import pattern
from .settings import Settings

_MAJOR = re.compile(r"/(channels|guilds|webhooks)/(\d+)")
_IDS = re.compile(r"\d{15,}")
_TEN_MINUTES = 600.0


@dataclass
class Bucket:
    """A number of calls to a route per number of seconds, for each channel, guild or webhook."""

    method: str | None
    route: re.Pattern[str]
    limit: int
    per: float


class Limits:
    """The rate limits and their use."""

    def __init__(self, settings: Settings) -> None:
        """Start without limits for routes."""
        self._settings = settings
        self._buckets: list[Bucket] = []
        self._used: dict[tuple[int, str], deque[float]] = {}
        self._all: deque[float] = deque()
        self._invalid: deque[float] = deque()

    def add(self, given: dict[str, Any]) -> None:
        """Add a limit for a route."""
        route = pattern(given.get("route", "/channels/*/messages"))
        self._buckets.append(Bucket(given.get("method"), route, int(given["limit"]), float(given["per"])))

    def lift(self) -> None:
        """Remove all limits for routes."""
        self._buckets.clear()
        self._used.clear()

    def take(self, method: str, path: str) -> tuple[dict[str, str], web.Response | None]:
        """Count a call. Returns the headers of its response, or the 429 in its place."""
        now = time.monotonic()
        if (most := self._settings.global_limit) > 0:
            _forget(self._all, now - 1.0)
            if len(self._all) >= most:
                return {}, limited(self._all[0] + 1.0 - now, "global", method, path)
            self._all.append(now)
        for number, bucket in enumerate(self._buckets):
            if bucket.method not in (None, method) or bucket.route.fullmatch(path) is None:
                continue
            used = self._used.setdefault((number, _major(path)), deque())
            _forget(used, now - bucket.per)
            wait = used[0] + bucket.per - now if used else bucket.per
            if len(used) >= bucket.limit:
                return {}, limited(wait, "user", method, path, limit=bucket.limit)
            used.append(now)
            return _headers(method, path, bucket.limit, bucket.limit - len(used), wait), None
        return _headers(method, path, 50, 49, 1.0), None

    def count(self, status: int) -> None:
        """Count a response that contributes to a ban."""
        if status in (401, 403, 429):
            self._invalid.append(time.monotonic())

    @property
    def invalid(self) -> int:
        """How many invalid requests there were in the last ten minutes."""
        _forget(self._invalid, time.monotonic() - _TEN_MINUTES)
        return len(self._invalid)

    @property
    def banned(self) -> bool:
        """Whether the address has made too many invalid requests."""
        return self.invalid >= self._settings.invalid_limit


def limited(wait: float, scope: str, method: str, path: str, *, limit: int = 5) -> web.Response:
    """Build a 429 with the headers and body that Discord sends."""
    wait = max(wait, 0.001)
    headers = {"Retry-After": str(math.ceil(wait)), "X-RateLimit-Scope": scope, "Via": "1.1 google"}
    if scope == "global":
        headers["X-RateLimit-Global"] = "true"
    else:
        headers.update(_headers(method, path, limit, 0, wait))
    body = {"message": "You are being rate limited.", "retry_after": round(wait, 3), "global": scope == "global"}
    return wire.answer(body, status=429, headers=headers)


def ban() -> web.Response:
    """Build the response for a banned address, which comes from the network in front of Discord and is not JSON."""
    page = "<html><title>Access denied | Error 1015</title>You are being rate limited</html>"
    return web.Response(text=page, status=429, content_type="text/html", headers={"Retry-After": "3600"})


def _headers(method: str, path: str, limit: int, left: int, wait: float) -> dict[str, str]:
    return {
        "X-RateLimit-Limit": str(limit),
        "X-RateLimit-Remaining": str(left),
        "X-RateLimit-Reset": f"{time.time() + wait:.3f}",
        "X-RateLimit-Reset-After": f"{wait:.3f}",
        "X-RateLimit-Bucket": hashlib.md5(f"{method} {_IDS.sub('*', path)}".encode()).hexdigest(),
    }


def _major(path: str) -> str:
    found = _MAJOR.match(path)
    return found.group(0) if found else ""


def _forget(times: deque[float], before: float) -> None:
    while times and times[0] <= before:
        times.popleft()
