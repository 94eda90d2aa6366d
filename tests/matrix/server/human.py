"""A person whose client encrypts, with matrix-nio: one command per line of standard input, one response per line."""

import asyncio
import json
import os
import sys
import tempfile
from base64 import b64encode
from hashlib import sha256
from uuid import uuid4

from nio import (
    Api,
    AsyncClient,
    AsyncClientConfig,
    Event,
    JoinResponse,
    LoginResponse,
    MegolmEvent,
    RoomCreateResponse,
    RoomInviteResponse,
    RoomMemberEvent,
    RoomRedactResponse,
    RoomSendResponse,
    UploadResponse,
)
from nio.crypto import Sas, decrypt_attachment


def keeps_its_word(sas: Sas, key: str) -> bool:
    """Check that the key matches the commitment that the other side made before."""
    said = key + Api.to_canonical_json(sas.start_verification().content)
    return sas.commitment == b64encode(sha256(said.encode()).digest()).decode().rstrip("=")


# Two deviations of 0.26 from https://spec.matrix.org/latest/client-server-api/#sas-verification: it compares the
# hexadecimal digest of the hash, and it announces its message authentication codes under the name of an older method.
Sas._check_commitment = keeps_its_word
Sas._mac_normal = "hkdf-hmac-sha256.v2"
Sas._mac_v1 = [Sas._mac_normal]


class Client(AsyncClient):
    """Unlike nio, believes no membership from inside an encrypted event: it would encrypt for fewer people."""

    def _handle_timeline_event(self, event, room_id, room, encrypted_rooms):
        if isinstance(event, MegolmEvent):
            event.room_id = room_id
            decrypted = self.olm._decrypt_megolm_no_error(event)
            if isinstance(decrypted, RoomMemberEvent):
                return decrypted
        return super()._handle_timeline_event(event, room_id, room, encrypted_rooms)


class Human:
    def __init__(self) -> None:
        self.client: AsyncClient | None = None
        self.seen: dict[str, list[dict]] = {}
        self.changed = asyncio.Event()

    async def login(self, homeserver: str, user: str, password: str) -> dict:
        config = AsyncClientConfig(encryption_enabled=True, store_sync_tokens=True, max_limit_exceeded=0)
        self.client = Client(homeserver, user, store_path=tempfile.mkdtemp(), config=config)
        response = await self.client.login(password, device_name="nio")
        assert isinstance(response, LoginResponse), response
        if self.client.should_upload_keys:
            await self.client.keys_upload()
        self.client.add_event_callback(self.see, (Event,))
        asyncio.get_running_loop().create_task(self.client.sync_forever(timeout=2000, full_state=True))
        await self.client.synced.wait()
        return {"device": self.client.device_id}

    async def see(self, room, event) -> None:
        source = event.source
        self.seen.setdefault(room.room_id, []).append(
            {
                "event_id": event.event_id,
                "sender": event.sender,
                "type": source.get("type"),
                "content": source.get("content", {}),
                "redacts": source.get("redacts"),
                "encrypted": bool(event.decrypted),
                "unreadable": isinstance(event, MegolmEvent),
            }
        )
        self.changed.set()

    async def create(self, invite: list[str]) -> dict:
        encryption = {
            "type": "m.room.encryption",
            "state_key": "",
            "content": {"algorithm": "m.megolm.v1.aes-sha2"},
        }
        response = await self.client.room_create(is_direct=True, invite=invite, initial_state=[encryption])
        assert isinstance(response, RoomCreateResponse), response
        await self.until(lambda: response.room_id in self.client.rooms)
        return {"room": response.room_id}

    async def until_joined(self, room: str, user: str) -> dict:
        def is_in() -> bool:
            known = self.client.rooms.get(room)
            return known is not None and user in known.users and user not in known.invited_users

        await self.until(is_in)
        return {}

    async def send(self, room: str, kind: str, content: dict) -> dict:
        response = await self.client.room_send(room, kind, content, ignore_unverified_devices=True)
        assert isinstance(response, RoomSendResponse), response
        return {"event_id": response.event_id}

    async def forge(self, room: str, event: dict) -> dict:
        """Encrypt an event as given, with fields that clients normally leave to the homeserver."""
        content = self.client.olm.group_encrypt(room, dict(event))
        method, path, data = Api.room_send(self.client.access_token, room, "m.room.encrypted", content, uuid4())
        response = await self.client._send(RoomSendResponse, method, path, data, (room,))
        assert isinstance(response, RoomSendResponse), response
        return {"event_id": response.event_id}

    async def redact(self, room: str, event_id: str) -> dict:
        response = await self.client.room_redact(room, event_id)
        assert isinstance(response, RoomRedactResponse), response
        return {}

    async def invite(self, room: str, user: str) -> dict:
        response = await self.client.room_invite(room, user)
        assert isinstance(response, RoomInviteResponse), response
        return {}

    async def join(self, room: str) -> dict:
        response = await self.client.join(room)
        assert isinstance(response, JoinResponse), response
        await self.until(lambda: room in self.client.rooms)
        return {}

    async def attach(self, room: str, name: str, text: str) -> dict:
        data = text.encode()
        response, keys = await self.client.upload(
            lambda *_: data, content_type="text/plain", filename=name, encrypt=True, filesize=len(data)
        )
        assert isinstance(response, UploadResponse), response
        content = {
            "msgtype": "m.file",
            "body": name,
            "info": {"mimetype": "text/plain", "size": len(data)},
            "file": {"url": response.content_uri, **keys},
        }
        return await self.send(room, "m.room.message", content)

    async def open(self, content: dict) -> dict:
        file = content["file"]
        response = await self.client.download(file["url"])
        data = decrypt_attachment(response.body, file["key"]["k"], file["hashes"]["sha256"], file["iv"])
        return {"text": data.decode()}

    async def forgets_the_room_key(self, room: str) -> dict:
        """Encrypt the next message with a new key."""
        self.client.olm.outbound_group_sessions.pop(room, None)
        return {}

    async def room_key(self, room: str) -> dict:
        """Return the session that encrypts the next message."""
        session = self.client.olm.outbound_group_sessions.get(room)
        return {"session": session.id if session else None}

    async def messages(self, room: str, after: int) -> dict:
        await self.until(lambda: len(self.seen.get(room, [])) > after)
        return {"seen": self.seen[room]}

    async def verify(self, user: str) -> dict:
        """Verify the only device of a user. Returns the emoji that their client shows."""
        if self.client.should_query_keys:
            await self.client.keys_query()
        (device,) = self.client.device_store[user].values()
        await self.client.start_key_verification(device)
        await self.until(lambda: any(sas.established_sas for sas in self.client.key_verifications.values()))
        (sas,) = self.client.key_verifications.values()
        # get_emoji() of 0.26 treats these as bytes to be split, but they already are the numbers of the emoji.
        numbers = sas.established_sas.bytes(sas._extra_info).emoji_indices
        shown = [sas.emoji[number][0] for number in numbers]
        await self.client.confirm_short_auth_string(sas.transaction_id)
        await self.until(lambda: sas.verified)
        return {"shown": shown, "verified": device.verified}

    async def start_to_verify(self, device: str) -> dict:
        """Ask another device of the same account to verify this one."""
        self.client.olm.users_for_key_query.add(self.client.user_id)
        await self.client.keys_query()
        await self.client.start_key_verification(self.client.device_store[self.client.user_id][device])
        return {}

    async def until_seen(self, room: str, event_id: str) -> dict:
        await self.until(lambda: any(event["event_id"] == event_id for event in self.seen.get(room, [])))
        return {}

    async def until(self, holds) -> None:
        while not holds():
            self.changed.clear()
            try:
                await asyncio.wait_for(self.changed.wait(), 0.2)
            except asyncio.TimeoutError:
                pass


async def serve() -> None:
    human = Human()
    loop = asyncio.get_running_loop()

    async def answer(command: dict) -> None:
        number, name = command.pop("number"), command.pop("do")
        try:
            result = {"number": number, "done": await getattr(human, name)(**command)}
        except BaseException as error:
            result = {"number": number, "failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(result), flush=True)

    tasks = set()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        task = loop.create_task(answer(json.loads(line)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    # The input has ended, and so has the test.
    os._exit(0)


def main() -> None:
    # nio reports what the tests provoke.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    asyncio.run(serve())


if __name__ == "__main__":
    main()
