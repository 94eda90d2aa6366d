"""A worker of an agent of the kind `pull`: fetches turns and answers them. Needs Python 3 and nothing else;
to seal answers to the key of an asker, also `pip install pyrage`.

REJOINDER_URL=http://127.0.0.1:7420/agents/fleet REJOINDER_TOKEN=... python3 pull_worker.py

With several nodes REJOINDER_URL has the URL at each of them, separated by spaces. A turn of each is worked on at a time.
"""
import json, os, sys, threading, time, urllib.error, urllib.request

NODES, TOKEN = [url.rstrip("/") for url in os.environ["REJOINDER_URL"].split()], os.environ["REJOINDER_TOKEN"]

def answer(turn):
    """Your agent. Returns how the turn ends, such as {"reply": …} or {"silent": "why"}."""
    return {"reply": f"You said: {turn['text']}"}

def sealed(turn, end):
    """The same end, but only the asker can read the reply if they gave a key."""
    if "seal_to" not in turn or "reply" not in end:
        return end
    import pyrage
    key = pyrage.x25519.Recipient.from_str(turn["seal_to"])
    return {"sealed": pyrage.encrypt(end["reply"].encode(), [key], armored=True).decode()}

def call(method, url, body=None, timeout=15):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=timeout) as response:
        return json.loads(response.read() or "null")

def is_over(error):
    """Whether the turn is not ours any more. Otherwise the gateway or its proxy is away (502, 504), starts, or another node has the turn (503)."""
    return isinstance(error, urllib.error.HTTPError) and error.code < 500 and error.code not in (408, 429)

def post(node, turn, below, body):
    """Posts about a turn to the node that gave it. If that is lost, another one goes on with the turn."""
    for node in [node] + [other for other in NODES if other != node]:
        try:
            return call("POST", f"{node}/turns/{turn['turn_id']}{below}", body | {"lease": turn["lease"]})
        except OSError as error:
            if is_over(error):
                raise
            failed = error
    raise failed

def keep(node, turn, is_done):
    """Renews the lease (30 s, if the section does not say otherwise) until the answer is there."""
    pause = 10
    while not is_done.wait(pause):
        try:
            post(node, turn, "/renew", {})
            pause = 10
        except OSError as error:
            print("the lease is not renewed:", error, file=sys.stderr)
            if is_over(error):
                return
            pause = 1

def settle(node, turn, end):
    """Posts the answer. While the gateway is away or starts, the turn is ours still, for the length of a lease."""
    for _ in range(60):
        try:
            return post(node, turn, "", end)
        except OSError as error:
            if is_over(error):
                raise
            print(error, file=sys.stderr)
            time.sleep(1)

def work(node):
    while True:
        try:
            turn = call("GET", f"{node}/next?wait=30", timeout=90)
            if turn is None:
                continue
            is_done = threading.Event()
            threading.Thread(target=keep, args=(node, turn, is_done), daemon=True).start()
            try:
                end = sealed(turn, answer(turn))
            except Exception as error:
                end = {"error": str(error)}
            is_done.set()
            settle(node, turn, end)
        except OSError as error:  # The gateway is away, or (409) the turn is not ours any more: it is answered elsewhere.
            print(error, file=sys.stderr)
            time.sleep(1)

for node in NODES[1:]:
    threading.Thread(target=work, args=(node,), daemon=True).start()
work(NODES[0])
