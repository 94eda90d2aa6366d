"""What goes wrong on demand, route by route."""

from __future__ import annotations

import itertools
import re
import socket
import struct
from dataclasses import dataclass
from typing import Any

from aiohttp import web

#: What a fault can do; README.md says what each means.
KINDS = ("rate_limit", "error", "drop", "reset", "delay", "hang")


def pattern(route: str) -> re.Pattern[str]:
    """Compile a route such as ``/channels/*/messages``: ``*`` is one segment, ``**`` anything."""
    parts = (
        ".*" if part == "**" else "[^/]*" if part == "*" else re.escape(part) for part in re.split(r"(\*\*|\*)", route)
    )
    return re.compile("".join(parts))


@dataclass
class Fault:
    """One thing that goes wrong, a number of times."""

    number: int
    method: str | None
    route: re.Pattern[str]
    #: How many calls it still hits; ``None`` is all of them.
    times: int | None
    #: How many calls it lets pass first.
    skip: int
    #: Only calls with these words in their JSON.
    words: str
    kind: str
    #: Seconds before anything else happens.
    delay: float
    #: Seconds between what it does and its answer.
    pause: float
    #: Whether the call is executed all the same.
    executed: bool
    options: dict[str, Any]

    @classmethod
    def of(cls, number: int, given: dict[str, Any]) -> Fault:
        """Read a fault as the control API takes it."""
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
        """Whether it is about this call."""
        return self.method in (None, method) and self.route.fullmatch(path) is not None and self.words in text


class Faults:
    """The faults that wait for a call."""

    def __init__(self) -> None:
        """Start with none."""
        self._numbers = itertools.count(1)
        self._waiting: list[Fault] = []

    def add(self, given: dict[str, Any]) -> int:
        """Queue a fault, and return its number."""
        fault = Fault.of(next(self._numbers), given)
        self._waiting.append(fault)
        return fault.number

    def lift(self, number: int | None) -> None:
        """Take back one fault, or all."""
        self._waiting = [fault for fault in self._waiting if number not in (None, fault.number)]

    def take(self, method: str, path: str, text: str) -> Fault | None:
        """Take the fault that hits this call, if there is one."""
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
    """End a connection with a TCP reset, as a dying machine or a middlebox does."""
    transport = request.transport
    if transport is None:
        return
    connection = transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
