"""A worker of an agent of the kind `pull`: fetches turns and answers them. Needs Python 3 and nothing else;
to seal answers to the key of an asker, also `pip install pyrage`.

REJOINDER_URL=http://127.0.0.1:7420/agents/fleet REJOINDER_TOKEN=... python3 pull_worker.py
"""
import json, os, sys, threading, time, urllib.error, urllib.request

URL, TOKEN = os.environ["REJOINDER_URL"].rstrip("/"), os.environ["REJOINDER_TOKEN"]

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

def call(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(URL + path, data, headers, method=method), timeout=90) as response:
        return json.loads(response.read() or "null")

def keep(turn, is_done):
    """Renews the lease (30 s, if the section does not say otherwise) until the answer is there."""
    while not is_done.wait(10):
        try:
            call("POST", f"/turns/{turn['turn_id']}/renew", {"lease": turn["lease"]})
        except OSError as error:
            print("the lease is not renewed:", error, file=sys.stderr)

def post(turn, answer):
    """Posts the answer. While the gateway is away or starts (503), the turn is ours still, for the length of a lease."""
    for _ in range(30):
        try:
            return call("POST", f"/turns/{turn['turn_id']}", answer)
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise
        except OSError as error:
            print(error, file=sys.stderr)
        time.sleep(1)

while True:
    try:
        turn = call("GET", "/next?wait=30")
        if turn is None:
            continue
        is_done = threading.Event()
        threading.Thread(target=keep, args=(turn, is_done), daemon=True).start()
        try:
            end = sealed(turn, answer(turn))
        except Exception as error:
            end = {"error": str(error)}
        is_done.set()
        post(turn, {"lease": turn["lease"]} | end)
    except OSError as error:  # The gateway is away, or (409) the turn is not ours any more: it is answered elsewhere.
        print(error, file=sys.stderr)
        time.sleep(1)
