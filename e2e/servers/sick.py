"""A legacy server without SDK that falls ill on demand: sick.py [--no-ping] [--slow-start SECONDS].

It appends its pid to $E2E_DIR/pids when it starts and does one thing at a time; sleep says in $E2E_DIR/working that it
has begun. Tools: echo and pid; sleep works for
SECONDS and hears nothing meanwhile; wedge never comes back the first time, and may not be called twice unasked; leak keeps MB megabytes for ever. The others answer first: spin then keeps a core
busy for ever, deaf never reads its stdin again, mute reads on and says nothing more. --no-ping: a ping gets no answer.
"""

import json
import os
import sys
import time

with open(os.path.join(os.environ["E2E_DIR"], "pids"), "a") as f:
    f.write(f"{os.getpid()}\n")
if "--slow-start" in sys.argv:
    time.sleep(float(sys.argv[sys.argv.index("--slow-start") + 1]))

TOOLS = ["echo", "pid", "sleep", "wedge", "leak", "spin", "deaf", "mute"]
READ_ONLY = {"readOnlyHint": True}
kept = []
mute = False


def call(name, arguments):
    if name == "sleep":
        with open(os.path.join(os.environ["E2E_DIR"], "working"), "a") as f:
            f.write("sleep\n")
        time.sleep(arguments["seconds"])
    if name == "wedge" and not os.path.exists(os.path.join(os.environ["E2E_DIR"], "wedged")):
        open(os.path.join(os.environ["E2E_DIR"], "wedged"), "x").close()
        time.sleep(1e6)
    if name == "leak":
        kept.append(b"x" * (arguments["mb"] << 20))
    text = arguments["text"] if name == "echo" else str(os.getpid())
    return {"content": [{"type": "text", "text": text}]}


def result(method, params):
    if method == "initialize":
        info = {"name": "sick", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [{"name": n, "inputSchema": {"type": "object"}, "annotations": READ_ONLY if n != "wedge" else {}} for n in TOOLS]}
    if method == "tools/call":
        return call(params["name"], params.get("arguments") or {})
    return {}


for line in sys.stdin:
    msg = json.loads(line)
    method, params = msg.get("method"), msg.get("params") or {}
    if mute or "id" not in msg or method is None or method == "ping" and "--no-ping" in sys.argv:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": msg["id"], "result": result(method, params)}), flush=True)
    illness = params.get("name")
    while illness == "spin":
        pass
    while illness == "deaf":
        time.sleep(3600)
    mute = mute or illness == "mute"
