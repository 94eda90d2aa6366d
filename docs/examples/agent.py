#!/usr/bin/env python3
"""An agent for `kind = "http"`: python3 agent.py 8080, with the secret in SERVICE_SECRET."""
import base64, hashlib, hmac, json, os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = base64.b64decode(os.environ["SERVICE_SECRET"].removeprefix("whsec_"))


def is_genuine(headers, body):
    id, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "0")
    signed = hmac.new(KEY, f"{id}.{at}.".encode() + body, hashlib.sha256).digest()
    signature = "v1," + base64.b64encode(signed).decode()
    is_fresh = at.isdigit() and abs(time.time() - int(at)) < 300
    return is_fresh and any(hmac.compare_digest(signature, one) for one in headers.get("webhook-signature", "").split())


class Agent(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if not is_genuine(self.headers, body):
            return self.send_error(401, "the signature is wrong")
        turn = json.loads(body)
        self.send_response(200)
        self.send_header("content-type", "application/x-ndjson")
        self.end_headers()
        for word in f"You said: {turn['text']}".split(" "):
            self.say({"text": word + " "})
        self.say({"end": True})

    def say(self, what):
        self.wfile.write(json.dumps(what).encode() + b"\n")


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Agent)
    print(server.server_port, flush=True)
    server.serve_forever()
