"""Legacy servers that take a server/discover probe badly: odd.py exits|silent|error|ok|holds|loses.

No SDK: a few lines of JSON-RPC, so that nothing is kind. exits: any request before initialize ends the process
(as rmcp < 3.0 does). silent: it is never answered, and neither is anything after it but initialize. error: it is
answered -32601. ok: a modern server that answers it. holds: answers a call when a blank line comes. loses: answers
no call. Tools: echo, pid; starts in a few milliseconds.
"""

import json
import os
import sys

kind = sys.argv[1]
with open(os.path.join(os.environ["E2E_DIR"], "pids"), "a") as f:
    f.write(f"{os.getpid()}\n")

READ_ONLY = {"readOnlyHint": True}
TOOLS = [
    {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}, "annotations": READ_ONLY},
    {"name": "pid", "inputSchema": {"type": "object"}, "annotations": READ_ONLY},
]
LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
INFO = {"name": "odd-" + kind, "version": "1"}
CAPS = {"tools": {}}


def answer(msg):
    method, params = msg["method"], msg.get("params") or {}
    if method == "initialize":
        want = params["protocolVersion"]
        return {"protocolVersion": want if want in LEGACY else LEGACY[-1], "capabilities": CAPS, "serverInfo": INFO}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        text = str(os.getpid()) if params["name"] == "pid" else params["arguments"]["text"]
        return {"content": [{"type": "text", "text": text}]}
    if method == "ping":
        return {}
    return None


def modern(msg, result):
    if result is None:
        return None
    result = {"resultType": "complete", **result}
    if msg["method"] == "tools/list":
        result.update(ttlMs=0, cacheScope="private")
    return result


initialized = False
for line in sys.stdin:
    if not line.strip():
        continue
    msg = json.loads(line)
    if "method" not in msg or "id" not in msg:
        continue
    if msg["method"] == "tools/call" and kind == "holds":
        while sys.stdin.readline().strip():
            pass
    if msg["method"] == "tools/call" and kind == "loses":
        continue
    out = {"jsonrpc": "2.0", "id": msg["id"]}
    if kind == "ok":
        if msg["method"] == "server/discover":
            result = {"supportedVersions": ["2026-07-28"], "capabilities": CAPS, "ttlMs": 0, "cacheScope": "private"}
            result["_meta"] = {"io.modelcontextprotocol/serverInfo": INFO}
            result["resultType"] = "complete"
        elif msg["method"] == "initialize":
            result = None
        else:
            result = modern(msg, answer(msg))
    elif msg["method"] != "initialize" and not initialized:
        if kind == "exits":
            print("unexpected request before initialize", file=sys.stderr)
            sys.exit(1)
        if kind == "silent":
            continue
        result = None
    else:
        initialized = initialized or msg["method"] == "initialize"
        result = answer(msg)
    if result is None and kind == "ok" and msg["method"] == "initialize":
        data = {"supported": ["2026-07-28"], "requested": (msg.get("params") or {}).get("protocolVersion")}
        out["error"] = {"code": -32022, "message": "Unsupported protocol version", "data": data}
    elif result is None:
        out["error"] = {"code": -32601, "message": "Method not found"}
    else:
        out["result"] = result
    sys.stdout.write(json.dumps(out) + "\n")
    sys.stdout.flush()
