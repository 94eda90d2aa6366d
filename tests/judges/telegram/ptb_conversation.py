#!/usr/bin/env python3
"""python-telegram-bot has a conversation with the people of a double, and gets the errors that it expects."""

import asyncio

from double import TOKEN, URL, Everybody, do, equal, look, undo
from telegram import (
    Bot,
    BotCommand,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputMediaPhoto,
    ReactionTypeEmoji,
    ReplyParameters,
    Update,
)
from telegram.constants import ChatAction
from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken, NetworkError, RetryAfter
from telegram.ext import (
    Application,
    CallbackQueryHandler,
    CommandHandler,
    MessageHandler,
    MessageReactionHandler,
    filters,
)


async def start(update, context):
    await update.message.reply_html("Hello <b>you</b>")


async def keyboard(update, context):
    buttons = [[InlineKeyboardButton("Yes", callback_data="yes"), InlineKeyboardButton("No", callback_data="no")]]
    await update.message.reply_text("Well?", reply_markup=InlineKeyboardMarkup(buttons))


async def pressed(update, context):
    await update.callback_query.answer(text="noted")
    await update.callback_query.edit_message_text(f"You said {update.callback_query.data}")


async def echo(update, context):
    message = update.message
    await message.chat.send_action(ChatAction.TYPING)
    await message.set_reaction("👀")
    quoted = f", to {message.reply_to_message.text}" if message.reply_to_message else ""
    parameters = ReplyParameters(message.message_id)
    await message.chat.send_message(f"You wrote {message.text}{quoted}", reply_parameters=parameters)


async def edited(update, context):
    await update.edited_message.chat.send_message(f"Now it is {update.edited_message.text}")


async def file_came(update, context):
    attached = update.message.effective_attachment
    file = await (attached[-1] if isinstance(attached, (list, tuple)) else attached).get_file()
    bytes_ = bytes(await file.download_as_bytearray())
    await update.message.reply_document(bytes_[::-1], filename="turned.txt", caption=f"{len(bytes_)} bytes")


async def reacted(update, context):
    emoji = update.message_reaction.new_reaction[0].emoji
    await context.bot.send_message(update.message_reaction.chat.id, f"You feel {emoji}")


def in_thread(work, *arguments, **more):
    """Runs a blocking control call in a thread, so that the client continues meanwhile."""
    return asyncio.to_thread(work, *arguments, **more)


async def people_talk():
    ada = await in_thread(Everybody, "Ada", username="ada_l")
    await in_thread(ada.says, "/start")
    hello = await in_thread(ada.hears, "Hello you")
    equal([(entity["type"], entity["offset"], entity["length"]) for entity in hello["entities"]], [("bold", 6, 3)])

    said = await in_thread(ada.says, "ping 😎")
    answer = await in_thread(ada.hears, "You wrote ping 😎")
    equal(answer["reply_to"], said)
    seen = {message["id"]: message for message in await in_thread(look, "visible", chat=ada.id)}
    equal(seen[said]["our_reactions"], ["👀"])
    equal((await in_thread(look, "typing", chat=ada.id))[0]["action"], "typing")
    await in_thread(do, "messages", person=ada.id, text="and now?", reply_to=answer["id"])
    await in_thread(ada.hears, "You wrote and now?, to You wrote ping 😎")
    await in_thread(ada.edits, said, "pong")
    await in_thread(ada.hears, "Now it is pong")
    await in_thread(ada.reacts, answer["id"], "🎉")
    await in_thread(ada.hears, "You feel 🎉")

    await in_thread(ada.says, "/keyboard")
    asked = await in_thread(ada.hears, "Well?")
    query = await in_thread(ada.presses, asked["id"], "No")
    equal((await in_thread(ada.hears, "You said no"))["id"], asked["id"])
    equal((await in_thread(look, "callbacks", id=query))["answer"]["text"], "noted")

    for kind in ("document", "photo"):
        await in_thread(ada.says, "", file={"kind": kind, "name": "a.txt", "text": "abc" + kind})
        turned = await in_thread(ada.hears, f"{3 + len(kind)} bytes")
        equal(turned["media"], "document")
    return ada


async def bot_calls(bot, ada):
    me = await bot.get_me()
    equal((me.id, me.can_read_all_group_messages), (int(TOKEN.split(":")[0]), False))
    await bot.set_my_commands([BotCommand("start", "Begin")])
    equal([command.command for command in await bot.get_my_commands()], ["start"])
    equal((await bot.get_chat(ada.id)).first_name, "Ada")
    equal((await bot.get_webhook_info()).url, "")

    sent = await bot.send_photo(ada.id, b"jpeg", caption="*here*", parse_mode="MarkdownV2")
    equal((sent.caption, sent.caption_entities[0].type), ("here", "bold"))
    again = await bot.send_photo(ada.id, sent.photo[-1].file_id)
    equal(again.photo[-1].file_unique_id, sent.photo[-1].file_unique_id)
    album = await bot.send_media_group(ada.id, [InputMediaPhoto(b"one", caption="two"), InputMediaPhoto(b"two")])
    equal(len({message.media_group_id for message in album}), 1)
    equal((await bot.edit_message_caption(ada.id, sent.message_id, caption="there")).caption, "there")
    equal(await bot.delete_message(ada.id, again.message_id), True)
    equal(await bot.set_message_reaction(ada.id, sent.message_id, [ReactionTypeEmoji("🔥")]), True)

    forum = (await in_thread(do, "chats", kind="forum", title="Family"))["id"]
    topic = (await in_thread(do, "topics", chat=forum, name="Trips"))["thread"]
    told = await bot.send_message(forum, "in here", message_thread_id=topic)
    equal((told.message_thread_id, told.is_topic_message), (topic, True))


async def refused(kind, call, says):
    try:
        await call
    except kind as error:
        if says not in str(error):
            raise AssertionError(f"{error} does not say {says}") from error
        return error
    raise AssertionError(f"it was not refused with {kind.__name__}: {says}")


async def errors_are_theirs(bot, ada):
    await refused(BadRequest, bot.send_message(1, "x"), "Chat not found")
    await refused(BadRequest, bot.send_message(ada.id, "a" * 4097), "Message is too long")
    await refused(BadRequest, bot.send_message(ada.id, "<b>", parse_mode="HTML"), "Can't parse entities")
    sent = await bot.send_message(ada.id, "same")
    await refused(BadRequest, bot.edit_message_text("same", ada.id, sent.message_id), "Message is not modified")
    await refused(BadRequest, bot.set_message_reaction(ada.id, sent.message_id, "✅"), "Reaction_invalid")
    await refused(BadRequest, bot.answer_callback_query("1"), "Query is too old")

    group = (await in_thread(do, "chats", kind="group", title="Small"))["id"]
    moved = (await in_thread(do, "migrations", chat=group))["id"]
    error = await refused(ChatMigrated, bot.send_message(group, "x"), "Group migrated")
    equal(error.new_chat_id, moved)

    await in_thread(do, "closings", chat=ada.id, ms=4_900)
    error = await refused(RetryAfter, bot.send_message(ada.id, "x"), "Flood control")
    equal(int(getattr(error.retry_after, "total_seconds", lambda: error.retry_after)()), 5)
    await in_thread(do, "closings", chat=ada.id, ms=0)
    await in_thread(do, "faults", effect={"error_before": 502}, method="sendMessage")
    await refused(NetworkError, bot.send_message(ada.id, "x"), "Bad Gateway")
    await in_thread(do, "faults", effect="lost_answer", method="sendMessage")
    await refused(NetworkError, bot.send_message(ada.id, "lost"), "")
    await in_thread(ada.hears, "lost")
    await in_thread(undo, "faults")
    await in_thread(do, "standings", chat=ada.id, standing="kicked")
    await refused(Forbidden, bot.send_message(ada.id, "x"), "bot was blocked by the user")


async def main():
    builder = Application.builder().token(TOKEN).base_url(f"{URL}/bot").base_file_url(f"{URL}/file/bot")
    application = builder.build()
    application.add_handlers([
        CommandHandler("start", start),
        CommandHandler("keyboard", keyboard),
        CallbackQueryHandler(pressed),
        MessageReactionHandler(reacted),
        MessageHandler(filters.UpdateType.EDITED_MESSAGE, edited),
        MessageHandler(filters.Document.ALL | filters.PHOTO, file_came),
        MessageHandler(filters.TEXT & ~filters.COMMAND, echo),
    ])
    failures = []

    async def failed(update, context):
        failures.append(context.error)

    application.add_error_handler(failed)
    async with application:
        await application.start()
        await application.updater.start_polling(
            allowed_updates=Update.ALL_TYPES, timeout=20, error_callback=failures.append
        )
        ada = await people_talk()
        await bot_calls(application.bot, ada)
        await errors_are_theirs(application.bot, ada)
        # Another poll ends the pending one with a conflict, as the server does.
        async with Bot(TOKEN, base_url=f"{URL}/bot") as other:
            await other.get_updates(timeout=0)
        while not any(isinstance(error, Conflict) for error in failures):
            await asyncio.sleep(0.02)
        await application.updater.stop()
        await application.stop()
    others = [error for error in failures if not isinstance(error, Conflict)]
    equal(others, [])

    stranger = Application.builder().token("1:wrong").base_url(f"{URL}/bot").build()
    await refused(InvalidToken, stranger.bot.get_me(), "")
    print("python-telegram-bot is content")


asyncio.run(asyncio.wait_for(main(), 90))
