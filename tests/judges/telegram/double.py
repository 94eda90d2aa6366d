"""The people of a double, controlled through its `/__control`."""

import json
import os
import urllib.parse
import urllib.request

URL = os.environ["TELEGRAM_DOUBLE_URL"]
TOKEN = os.environ["TELEGRAM_DOUBLE_TOKEN"]

_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def do(path, **body):
    """Performs an action; the README lists them."""
    return _ask("POST", path, body)


def undo(path):
    return _ask("DELETE", path, None)


def look(path, **query):
    return _ask("GET", f"{path}?{urllib.parse.urlencode(query)}", None)


def heard(chat, text):
    """Waits until the bot has sent this text."""
    return look("heard", chat=chat, text=text)


def _ask(method, path, body):
    request = urllib.request.Request(
        f"{URL}/__control/{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    try:
        with _opener.open(request, timeout=60) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{method} {path}: {error.read().decode()}") from error


def equal(found, wanted):
    """An assertion that shows both values, and that `python -O` does not remove."""
    if found != wanted:
        raise AssertionError(f"found {found!r}, wanted {wanted!r}")


class Everybody:
    """A person with the actions that a conversation needs."""

    def __init__(self, name, **more):
        self.id = do("people", name=name, **more)["id"]

    def says(self, text, **more):
        return do("messages", person=self.id, text=text, **more)["message_id"]

    def edits(self, message, text):
        do("edits", person=self.id, message=message, text=text)

    def presses(self, message, button):
        return do("presses", person=self.id, message=message, button=button)["callback_query_id"]

    def reacts(self, message, emoji):
        do("reactions", person=self.id, message=message, emoji=emoji)

    def hears(self, text):
        return heard(self.id, text)
