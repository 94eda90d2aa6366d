"""Talks to the API with OpenAI's own library, and prints what it read as JSON.

Usage: client.py BASE_URL TOKEN
"""

import json
import sys

import openai


def main(base_url: str, token: str) -> None:
    """Ask in every way that the library knows."""
    client = openai.OpenAI(base_url=base_url, api_key=token, max_retries=0, timeout=60)
    hello = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "hello"},
    ]
    whole = client.chat.completions.create(model="main", messages=hello, temperature=0.1, n=1)
    chunks = list(
        client.chat.completions.create(
            model="main",
            messages=[{"role": "user", "content": "stream"}],
            user="ada",
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    again = client.chat.completions.create(
        model="main", messages=[{"role": "user", "content": "again"}], user="ada", extra_headers={"Idempotency-Key": "k"}
    )
    repeated = client.chat.completions.create(
        model="main", messages=[{"role": "user", "content": "again"}], user="ada", extra_headers={"Idempotency-Key": "k"}
    )
    read = {
        "models": [model.id for model in client.models.list()],
        "model": client.models.retrieve("main").id,
        "whole": whole.choices[0].message.content,
        "finish_reason": whole.choices[0].finish_reason,
        "status": whole.rejoinder["status"],
        "request_id": whole._request_id,
        "fetched": client.chat.completions.retrieve(whole.id).choices[0].message.content,
        "streamed": "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices),
        "pieces": sum(1 for chunk in chunks if chunk.choices and chunk.choices[0].delta.content),
        "finished": [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1],
        "again": again.choices[0].message.content,
        "is_same": again.id == repeated.id,
    }
    try:
        client.chat.completions.create(model="gpt-4o", messages=hello)
    except openai.NotFoundError as error:
        read["unknown"] = [error.code, error.param, error.type]
    try:
        openai.OpenAI(base_url=base_url, api_key="wrong", max_retries=0).models.list()
    except openai.AuthenticationError as error:
        read["unauthorized"] = error.code
    print(json.dumps(read))


main(*sys.argv[1:])
