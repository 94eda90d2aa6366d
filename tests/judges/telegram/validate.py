#!/usr/bin/env python3
"""Validates logs of the double with aiogram's models, which are generated from the Bot API's page:
the bot's calls, the double's responses, and the updates that it pushed to a webhook.

usage: validate.py LOG...

Prints one line per problem. Exits with 1 if there is a problem, or a log without a call.
"""

import json
import sys

import aiogram.methods
from aiogram.methods import TelegramMethod
from aiogram.types import Update
from pydantic import TypeAdapter, ValidationError

METHODS = {
    method.__api_method__.lower(): method
    for method in vars(aiogram.methods).values()
    if isinstance(method, type) and issubclass(method, TelegramMethod) and method is not TelegramMethod
}
RESULTS = {name: TypeAdapter(method.__returning__) for name, method in METHODS.items()}


def decoded(value):
    """Decodes an object or a list that is sent as a string, as in all encodings but JSON."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def found(error):
    for one in error.errors():
        place = ".".join(map(str, one["loc"]))
        # The model requires a file where the request contains `attach://name`.
        if "InputFile" not in place:
            yield f"{place}: {one['msg']}"


def unknown_fields(given, model, place):
    """Yields the fields that the model lacks, at any depth: the models themselves accept unknown fields."""
    if isinstance(given, list) and isinstance(model, list):
        for at, (one, known) in enumerate(zip(given, model)):
            yield from unknown_fields(one, known, f"{place}.{at}")
    elif isinstance(given, dict) and hasattr(type(model), "model_fields"):
        fields = {(field.alias or name): name for name, field in type(model).model_fields.items()}
        for key, value in given.items():
            if key not in fields:
                yield f"{place}.{key}: is no field of {type(model).__name__}"
            else:
                yield from unknown_fields(value, getattr(model, fields[key]), f"{place}.{key}")


def problems_of_request(method, params):
    model = METHODS.get(method.lower())
    if model is None:
        yield "there is no such method"
        return
    params = {key: decoded(value) for key, value in params.items()}
    # References to files are checked by the server.
    try:
        read = model.model_validate(params)
    except ValidationError as error:
        yield from found(error)
        yield from (f"{key}: is no parameter" for key in params if key not in model.model_fields)
        return
    yield from unknown_fields(params, read, "")


def problems_of_object(adapter, given):
    try:
        read = adapter.validate_python(given)
    except ValidationError as error:
        yield from found(error)
        return
    yield from unknown_fields(given, read, "")


UPDATE = TypeAdapter(Update)


def problems(line):
    entry = json.loads(line)
    if "update" in entry:
        for problem in problems_of_object(UPDATE, entry["update"]):
            yield f"update -> {problem}"
        return
    method = entry["method"]
    error = entry.get("error")
    # A rejected call may be invalid, so it is not checked.
    if error is None or error["error_code"] not in (400, 404):
        for problem in problems_of_request(method, entry["params"]):
            yield f"{method} <- {problem}"
    if "result" in entry:
        for problem in problems_of_object(RESULTS[method.lower()], entry["result"]):
            yield f"{method} -> {problem}"


def main():
    looked_at = bad = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as log:
            lines = log.readlines()
        if not lines:
            bad += 1
            print(f"{path}: holds no call")
        for number, line in enumerate(lines, 1):
            looked_at += 1
            for problem in problems(line):
                bad += 1
                print(f"{path}:{number}: {problem}")
    print(f"{looked_at} calls and pushes, {bad} problems")
    sys.exit(1 if bad or not looked_at else 0)


if __name__ == "__main__":
    main()
