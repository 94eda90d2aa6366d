"""Faults: failures of REST calls on demand."""

from __future__ import annotations

import itertools
import re
import socket
import struct
from dataclasses import dataclass
from typing import Any

from aiohttp import web

#: The kinds of faults, which README.md describes.
KINDS = ("rate_limit", "error", "drop", "reset", "delay", "hang")


def pattern(route: str) -> re.Pattern[str]:
    """Compile a route such as ``/channels/*/messages``: ``*`` matches one segment, ``**`` anything."""
    parts = (
        ".*" if part == "**" else "[^/]*" if part == "*" else re.escape(part) for part in re.split(r"(\*\*|\*)", route)
    )
    return re.compile("".join(parts))


@dataclass
class Fault:
    """A failure of matching calls."""

    number: int
    method: str | None
    route: re.Pattern[str]
    #: How many further calls it affects; ``None`` is all.
    times: int | None
    #: How many matching calls pass first.
    skip: int
    #: Text that the call's JSON must contain.
    words: str
    kind: str
    #: Seconds before anything else happens.
    delay: float
    #: Seconds between the execution and the response.
    pause: float
    #: Whether the call is executed nevertheless.
    executed: bool
    options: dict[str, Any]

    @classmethod
    def of(cls, number: int, given: dict[str, Any]) -> Fault:
        """Read a fault from a control call."""
        kind = given["do"]
        if kind not in KINDS:
            raise ValueError(f"there is no fault `{kind}`: there are {', '.join(KINDS)}")
        times = given.get("times", 1)
        return cls(
            number=number,
            method=given.get("method"),
            route=pattern(given.get("route", "**")),
            times=None if times == 0 else int(times),
            skip=int(given.get("skip", 0)),
            words=given.get("words", ""),
            kind=kind,
            delay=float(given.get("delay", 0)),
            pause=float(given.get("pause", 0)),
            executed=bool(given.get("executed", kind in ("drop", "delay", "hang"))),
            options=given,
        )

    def matches(self, method: str, path: str, text: str) -> bool:
        """Whether it applies to this call."""
        return self.method in (None, method) and self.route.fullmatch(path) is not None and self.words in text


class Faults:
    """The active faults."""

    def __init__(self) -> None:
        """Start without faults."""
        self._numbers = itertools.count(1)
        self._waiting: list[Fault] = []

    def add(self, given: dict[str, Any]) -> int:
        """Add a fault, and return its number."""
        fault = Fault.of(next(self._numbers), given)
        self._waiting.append(fault)
        return fault.number

    def lift(self, number: int | None) -> None:
        """Remove one fault, or all."""
        self._waiting = [fault for fault in self._waiting if number not in (None, fault.number)]

    def take(self, method: str, path: str, text: str) -> Fault | None:
        """Take the fault that applies to this call, if there is one."""
        for fault in self._waiting:
            if not fault.matches(method, path, text):
                continue
            if fault.skip > 0:
                fault.skip -= 1
                continue
            if fault.times is not None:
                fault.times -= 1
                if fault.times == 0:
                    self._waiting.remove(fault)
            return fault
        return None


def cut(request: web.Request) -> None:
    """End a connection with a TCP reset, as a crashing machine or a middlebox does."""
    transport = request.transport
    if transport is None:
        return
    connection = transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
