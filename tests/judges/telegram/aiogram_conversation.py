#!/usr/bin/env python3
"""aiogram has a conversation with the people of a double, and gets the errors that it expects."""

import asyncio

from aiogram import Bot, Dispatcher, F
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import (
    TelegramBadRequest,
    TelegramConflictError,
    TelegramForbiddenError,
    TelegramMigrateToChat,
    TelegramNetworkError,
    TelegramRetryAfter,
    TelegramServerError,
    TelegramUnauthorizedError,
)
from aiogram.filters import Command, CommandStart
from aiogram.methods import SendMessageDraft
from aiogram.types import (
    BufferedInputFile,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputMediaPhoto,
    LinkPreviewOptions,
    MessageEntity,
    ReactionTypeEmoji,
    ReplyParameters,
)
from aiogram.webhook.aiohttp_server import SimpleRequestHandler
from aiohttp import web
from double import TOKEN, URL, Everybody, do, equal, look, undo

dispatcher = Dispatcher()


@dispatcher.message(CommandStart())
async def start(message):
    entities = [MessageEntity(type="italic", offset=0, length=5)]
    await message.answer("Hello you", entities=entities, parse_mode=None)


@dispatcher.message(Command("keyboard"))
async def keyboard(message):
    buttons = [[InlineKeyboardButton(text=text, callback_data=text.lower()) for text in ("Yes", "No")]]
    await message.answer("Well?", reply_markup=InlineKeyboardMarkup(inline_keyboard=buttons))


@dispatcher.callback_query()
async def pressed(query):
    await query.answer("noted")
    await query.message.edit_text(f"You said {query.data}")


@dispatcher.message(F.document | F.photo | F.voice)
async def file_came(message, bot):
    attached = message.document or message.voice or message.photo[-1]
    bytes_ = (await bot.download(attached)).read()
    turned = BufferedInputFile(bytes_[::-1], filename="turned.txt")
    await message.answer_document(turned, caption=f"{len(bytes_)} bytes in {message.content_type.value}")


@dispatcher.message(F.location | F.contact | F.sticker)
async def other_came(message):
    await message.answer(f"A {message.content_type.value}")


@dispatcher.message(F.text)
async def echo(message, bot):
    await bot.send_chat_action(message.chat.id, "typing", message_thread_id=message.message_thread_id)
    await message.react([ReactionTypeEmoji(emoji="👀")])
    await message.reply(f"You wrote {message.text}", link_preview_options=LinkPreviewOptions(is_disabled=True))


@dispatcher.edited_message()
async def edited(message):
    await message.answer(f"Now it is {message.text}")


@dispatcher.message_reaction()
async def reacted(reaction, bot):
    await bot.send_message(reaction.chat.id, f"You feel {reaction.new_reaction[0].emoji}")


def in_thread(work, *arguments, **more):
    """Runs a blocking control call in a thread, so that the client continues meanwhile."""
    return asyncio.to_thread(work, *arguments, **more)


async def people_talk():
    ada = await in_thread(Everybody, "Ada")
    await in_thread(ada.says, "/start")
    hello = await in_thread(ada.hears, "Hello you")
    equal([(entity["type"], entity["offset"], entity["length"]) for entity in hello["entities"]], [("italic", 0, 5)])
    said = await in_thread(ada.says, "ping https://example.org")
    answer = await in_thread(ada.hears, "You wrote ping https://example.org")
    equal((answer["reply_to"], answer["link_preview"]), (said, False))
    await in_thread(ada.edits, said, "pong")
    await in_thread(ada.hears, "Now it is pong")
    await in_thread(ada.reacts, answer["id"], "🎉")
    await in_thread(ada.hears, "You feel 🎉")

    await in_thread(ada.says, "/keyboard")
    asked = await in_thread(ada.hears, "Well?")
    await in_thread(ada.presses, asked["id"], 0)
    equal((await in_thread(ada.hears, "You said yes"))["id"], asked["id"])

    for kind in ("document", "photo", "voice"):
        await in_thread(ada.says, "", file={"kind": kind, "name": "a.txt", "text": "abc"})
        await in_thread(ada.hears, f"3 bytes in {kind}")
    await in_thread(do, "messages", person=ada.id, fields={"location": {"latitude": 52.5, "longitude": 13.4}})
    await in_thread(ada.hears, "A location")
    await in_thread(ada.says, "", file={"kind": "sticker", "text": "webp"})
    await in_thread(ada.hears, "A sticker")

    # In a group with privacy mode, the bot gets a mention but no other messages.
    forum = (await in_thread(do, "chats", kind="forum", title="Family"))["id"]
    topic = (await in_thread(do, "topics", chat=forum, name="Trips"))["thread"]
    name = (await in_thread(look, "bot"))["username"]
    for text in ("chatter", f"@{name} where to?"):
        await in_thread(do, "messages", person=ada.id, chat=forum, thread=topic, text=text)
    asked = f"You wrote @{name} where to?"
    equal((await in_thread(look, "heard", chat=forum, text=asked))["thread"], topic)
    return ada


async def bot_calls(bot, ada):
    equal((await bot.me()).id, int(TOKEN.split(":")[0]))
    equal(await bot(SendMessageDraft(chat_id=ada.id, draft_id=3, text="so far")), True)
    equal((await in_thread(look, "drafts", chat=ada.id))["now"]["text"], "so far")
    first = await bot.send_message(ada.id, "one")
    parameters = ReplyParameters(message_id=first.message_id, quote="one")
    quoting = await bot.send_message(ada.id, "two", reply_parameters=parameters)
    equal((quoting.reply_to_message.message_id, quoting.quote.text), (first.message_id, "one"))
    media = [InputMediaPhoto(media=BufferedInputFile(text, filename="a.jpg")) for text in (b"one", b"two")]
    album = await bot.send_media_group(ada.id, media)
    equal(len({message.media_group_id for message in album}), 1)
    equal(await bot.delete_messages(ada.id, [message.message_id for message in album]), True)
    equal((await bot.get_chat(ada.id)).first_name, "Ada")


async def refused(kind, call, says):
    try:
        await call
    except kind as error:
        if says not in str(error):
            raise AssertionError(f"{error} does not say {says}") from error
        return error
    raise AssertionError(f"it was not refused with {kind.__name__}: {says}")


async def errors_are_theirs(bot, ada):
    await refused(TelegramBadRequest, bot.send_message(1, "x"), "chat not found")
    await refused(TelegramBadRequest, bot.send_message(ada.id, "a_b", parse_mode="Markdown"), "at byte offset 1")
    absent = ReplyParameters(message_id=99_999)
    await refused(TelegramBadRequest, bot.send_message(ada.id, "x", reply_parameters=absent), "to be replied not found")
    group = (await in_thread(do, "chats", kind="group", title="Small"))["id"]
    moved = (await in_thread(do, "migrations", chat=group))["id"]
    error = await refused(TelegramMigrateToChat, bot.send_message(group, "x"), "")
    equal(error.migrate_to_chat_id, moved)
    await in_thread(do, "faults", effect={"refuse": {
        "error_code": 429, "description": "Too Many Requests: retry after 7", "parameters": {"retry_after": 7},
    }}, method="sendMessage", chat=ada.id)
    error = await refused(TelegramRetryAfter, bot.send_message(ada.id, "x"), "")
    equal(error.retry_after, 7)
    await in_thread(do, "faults", effect={"error_after": 500}, method="sendMessage")
    await refused(TelegramServerError, bot.send_message(ada.id, "done all the same"), "")
    await in_thread(ada.hears, "done all the same")
    await in_thread(do, "faults", effect="reset", method="sendMessage")
    await refused(TelegramNetworkError, bot.send_message(ada.id, "never sent"), "")
    await in_thread(undo, "faults")
    await in_thread(do, "standings", chat=ada.id, standing="kicked")
    await refused(TelegramForbiddenError, bot.send_message(ada.id, "x"), "bot was blocked by the user")


async def webhook_is_served(bot):
    app = web.Application()
    SimpleRequestHandler(dispatcher, bot, secret_token="s3cret").register(app, path="/hook")
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    used = dispatcher.resolve_used_update_types()
    await bot.set_webhook(f"http://127.0.0.1:{port}/hook", secret_token="s3cret", allowed_updates=used)
    ben = await in_thread(Everybody, "Ben")
    await in_thread(ben.says, "over there?")
    answer = await in_thread(ben.hears, "You wrote over there?")
    await in_thread(ben.reacts, answer["id"], "🔥")
    await in_thread(ben.hears, "You feel 🔥")
    info = await bot.get_webhook_info()
    equal((info.url, info.last_error_message), (f"http://127.0.0.1:{port}/hook", None))
    await bot.delete_webhook()
    await runner.cleanup()


async def main():
    session = AiohttpSession(api=TelegramAPIServer.from_base(URL))
    async with Bot(TOKEN, session=session) as bot:
        polling = asyncio.create_task(
            dispatcher.start_polling(bot, handle_signals=False, polling_timeout=20,
                                     allowed_updates=dispatcher.resolve_used_update_types())
        )
        ada = await people_talk()
        await bot_calls(bot, ada)
        await errors_are_theirs(bot, ada)
        await dispatcher.stop_polling()
        await polling
    async with Bot(TOKEN, session=AiohttpSession(api=TelegramAPIServer.from_base(URL))) as bot:
        await webhook_is_served(bot)
        before = len(await in_thread(look, "calls", method="getUpdates"))
        first = asyncio.create_task(bot.get_updates(timeout=20))
        while len(await in_thread(look, "calls", method="getUpdates")) <= before:
            await asyncio.sleep(0.02)
        await bot.get_updates(timeout=0)
        await refused(TelegramConflictError, first, "terminated by other getUpdates request")
    async with Bot("1:wrong", session=AiohttpSession(api=TelegramAPIServer.from_base(URL))) as stranger:
        await refused(TelegramUnauthorizedError, stranger.get_me(), "")
    print("aiogram is content")


asyncio.run(asyncio.wait_for(main(), 90))
