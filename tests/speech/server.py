"""A server with OpenAI's API for audio: espeak-ng speaks, and pocketsphinx hears.

`server.py PORT` speaks WAV alone, and hears only WAV files of one channel with 16,000 samples of 16 bits a second.
"""

import io
import json
import subprocess
import sys
import wave
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pocketsphinx import Decoder


class Handler(BaseHTTPRequestHandler):
    """Both calls."""

    def do_POST(self) -> None:
        """Answer one of them."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        match self.path:
            case "/v1/audio/speech":
                self.answer(*speak(json.loads(body)))
            case "/v1/audio/transcriptions":
                kind = self.headers["Content-Type"].encode()
                parts = message_from_bytes(b"Content-Type: " + kind + b"\r\n\r\n" + body).get_payload()
                self.answer(*hear(next(part for part in parts if part.get_filename()).get_payload(decode=True)))
            case _:
                self.answer(404, b"{}")

    def answer(self, status: int, body: bytes) -> None:
        """Send an answer."""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def speak(asked: dict) -> tuple[int, bytes]:
    """Speak a text."""
    if asked["response_format"] != "wav":
        return 400, b'{"error": {"message": "response_format must be wav"}}'
    command = ["espeak-ng", "-v", asked["voice"], "-s", "150", "--stdout", "--", asked["input"]]
    return 200, subprocess.run(command, check=True, capture_output=True).stdout


def hear(recording: bytes) -> tuple[int, bytes]:
    """Write a recording down."""
    try:
        with wave.open(io.BytesIO(recording)) as file:
            samples = file.readframes(file.getnframes())
            if file.getparams()[:3] != (1, 2, 16000):
                return 415, b'{"error": {"message": "one channel, 16 bits, 16000 Hz"}}'
    except wave.Error as error:
        return 415, json.dumps({"error": {"message": str(error)}}).encode()
    decoder = Decoder(samprate=16000, loglevel="FATAL")
    decoder.start_utt()
    decoder.process_raw(samples, full_utt=True)
    decoder.end_utt()
    words = decoder.hyp()
    return 200, json.dumps({"text": words.hypstr if words else ""}).encode()


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
