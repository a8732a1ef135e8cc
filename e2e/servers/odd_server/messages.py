"""What a server says that is odd: FORMS has for each name the reason, and a function from a request to what is sent for it.

Of what the function gives, a dict is sent as JSON and a str as it is, each as one line, body or event. Bytes go out as they are, a
number is a pause in seconds, and None is nothing. START is what is said before the first request, HEAR what is made of a
notification or a response.
"""

import json
import os
import sys
import time

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
ECHO = {"name": "echo", "inputSchema": {"type": "object"}}
EVERYTHING = {"tools": {}, "prompts": {}, "resources": {}}
CALL, LIST, HELLO, PROGRESS = "tools/call", "tools/list", "initialize", "notifications/progress"
KNOWN = (HELLO, LIST, CALL, "ping")


def ok(m, result):
    return {"jsonrpc": "2.0", "id": m["id"], "result": result}


def no(m, code=-32601, text="Method not found"):
    return {"jsonrpc": "2.0", "id": m["id"], "error": {"code": code, "message": text}}


def note(method, **params):
    return {"jsonrpc": "2.0", "method": method, "params": params}


def said(text="OK", **more):
    return {"content": [{"type": "text", "text": text}], **more}


def plain(m):
    """The answer of a server that is not odd."""
    if m["method"] == HELLO:
        want = m["params"].get("protocolVersion")
        version = want if want in VERSIONS else VERSIONS[-1]
        return ok(m, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "odd", "version": "1"}})
    return {LIST: ok(m, {"tools": [ECHO]}), CALL: ok(m, said()), "ping": ok(m, {})}.get(m["method"]) or no(m)


def full(m):
    """The same of one that has prompts and resources, too."""
    lists = {"prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates"}
    if m["method"] in lists:
        return ok(m, {lists[m["method"]]: []})
    return res(plain(m), capabilities=EVERYTHING) if m["method"] == HELLO else plain(m)


def text(a, **how):
    return json.dumps(a, **how)


def raw(a, end="\n"):
    return (a if isinstance(a, str) else text(a, ensure_ascii=False)).encode() + end.encode()


def res(a, **more):
    """The answer a with other members in its result."""
    return {**a, "result": {**a["result"], **more}}


def each(f):
    """Odd in each answer."""
    return lambda m: f(plain(m))


def on(method, f, usual=plain):
    """Odd in the answers to one method: f gets the request and the answer that is due."""
    return lambda m: f(m, usual(m)) if m["method"] == method else usual(m)


def call(f):
    return on(CALL, lambda m, a: f(a))


def hello(**more):
    return on(HELLO, lambda m, a: res(a, **more))


def before(*things):
    return each(lambda a: [*things, a])


def id_as(f, a):
    """The answer a with its id as f makes it. Ids that are no numbers stay."""
    return {**a, "id": f(a["id"])} if isinstance(a["id"], int) else a


def first(key, seen=set()):
    """Whether this is the first time that key is asked for."""
    return not (key in seen or seen.add(key))


def pages(f):
    """tools/list with a nextCursor, which f makes of the cursor that was asked for."""
    return on(LIST, lambda m, a: f(m, a, (m.get("params") or {}).get("cursor")))


def next_is(cursor):
    return pages(lambda m, a, asked: res(a, nextCursor=cursor))


def unanswered(method):
    return on(method, lambda m, a: None, full)


def unknown(f):
    """Odd in what is made of methods that the server does not know."""
    return lambda m: plain(m) if m["method"] in KNOWN else f(m)


def refuse(when, code=-32602, why="Invalid params"):
    return lambda m: no(m, code, why) if when(m) else plain(m)


def progress(*values, token=lambda t: t):
    """Progress of each call, if its client has asked for it."""
    def f(m, a):
        asked = (m["params"].get("_meta") or {}).get("progressToken")
        if asked is None:
            return a
        # The TypeScript SDK forgets progress that comes in one piece with the answer, so there is a pause between them.
        return [*(note(PROGRESS, progressToken=token(asked), progress=v, total=3) for v in values), 0.2, a]
    return on(CALL, f)


waiting = {}  # by the id of a question, as JSON: the answers that wait for its response


def ask(id, method="ping", at=CALL, times=1):
    """Ask the client, and answer the request only after the response to that very id."""
    def f(m, a):
        mine = id(m) if callable(id) else id
        waiting.setdefault(text(mine), []).append(a)
        return [{"jsonrpc": "2.0", "id": mine, "method": method}] * times
    return on(at, f)


def answered(m):
    return waiting.pop(text(m.get("id")), None) if "method" not in m else None


def held(m, a):
    """A call with hold waits for its cancellation."""
    if not m["params"].get("arguments", {}).get("hold"):
        return a
    waiting[text(m["id"])] = [a]
    return None


def cancelled(m):
    return waiting.pop(text(m["params"]["requestId"]), None) if m.get("method") == "notifications/cancelled" else None


def leave(code=1, after=()):
    """Say something and end."""
    return [*after, lambda: os._exit(code)]


def flood(m):
    sys.stderr.write("a line of the log\n" * 16384)
    return plain(m)


def other_start():
    """Whether this is not the first start of the server in this session."""
    path = os.path.join(os.environ["E2E_DIR"], "started")
    if os.path.exists(path):
        return True
    open(path, "w").close()
    return False


def newer(m):
    return m["method"] == HELLO and m["params"]["protocolVersion"] not in VERSIONS[:3]


ready = []  # what had to come first, once it has come


def strict_hello(m):
    return no(m, -32600, "Not initialized") if m["method"] not in (HELLO, "ping") and not ready else plain(m)


def strict_list(m):
    if m["method"] == LIST:
        ready.append(m)
    return no(m, -32602, "Unknown tool") if m["method"] == CALL and not ready else plain(m)


def tool(**more):
    return on(LIST, lambda m, a: res(a, tools=[{**ECHO, **more}]))


def tools(*all):
    return on(LIST, lambda m, a: res(a, tools=list(all)))


def content(*all, **more):
    return call(lambda a: {**a, "result": {"content": list(all), **more}})


NUMBERS = '{"n":[1915883588174806058,-0,0.1000000000000000055,1E5,1.0]}'
ODD_TEXT = "a\u2028b\u2029c\u0085d\u200be\u0301\U0001f600"


def structured(members):
    return call(lambda a: text(a)[:-2] + ',"structuredContent":' + members + "}}")


FORMS = {
    "plain": ("not odd: the control of this table", plain),
    # Ids.
    "id-string": ("7 comes back as \"7\" (python-sdk#1720, rust-sdk#1017)", each(lambda a: id_as(str, a))),
    "id-string-calls": ("the same for calls only", call(lambda a: id_as(str, a))),
    "id-float": ("7 comes back as 7.0: a language with one kind of number", each(lambda a: id_as(float, a))),
    "id-string-float": ("7 comes back as \"7.0\" (AutoCorrode#43)", each(lambda a: id_as(lambda i: str(float(i)), a))),
    "id-above-53-bits": ("the client counts from 2^53 (erpc#1092)", plain),
    "answered-twice": ("a handler and its wrapper both answer", each(lambda a: [a, a])),
    "answer-to-nobody": ("an answer to an id that nobody has used", before(ok({"id": 987654}, {}))),
    "error-to-nobody": ("an error with id null before each answer", before(no({"id": None}, -32700, "Parse error"))),
    "notification-answered": ("notifications are answered, with id null", plain),
    "notification-answered-without-id": ("notifications are answered, without an id", plain),
    "reads-integers-only": ("ids are read into an int: a request with another id is dropped", lambda m: plain(m) if isinstance(m["id"], int) else None),
    "dies-of-string-ids": ("ids are read into an int: another id ends the process", lambda m: plain(m) if isinstance(m["id"], int) else leave()),
    # Capabilities.
    "caps-empty": ("capabilities {} though there are tools (codebase-memory-mcp#1185)", hello(capabilities={})),
    "caps-null": ("capabilities null", hello(capabilities=None)),
    "caps-missing": ("no capabilities", on(HELLO, lambda m, a: (a["result"].pop("capabilities"), a)[1])),
    "caps-resources": ("capabilities without tools, but with resources", hello(capabilities={"resources": {}})),
    "caps-tools-null": ("tools: null, from a nil pointer", hello(capabilities={"tools": None})),
    "caps-tools-true": ("tools: true, as a flag", hello(capabilities={"tools": True})),
    "caps-array": ("capabilities [], PHP's empty object", hello(capabilities=[])),
    # Lists.
    "prompts-unanswered": ("prompts/list is never answered (mcp-golang#122)", unanswered("prompts/list")),
    "resources-unanswered": ("resources/list is never answered", unanswered("resources/list")),
    "templates-unanswered": ("resources/templates/list is never answered", unanswered("resources/templates/list")),
    "prompts-slow": ("prompts/list takes a second (comfyui-mcp#29)", on("prompts/list", lambda m, a: [1.0, a], full)),
    "lists-refused": ("prompts and resources are declared, and unknown", hello(capabilities=EVERYTHING)),
    "lists-null": ("prompts: null, a nil slice of Go", on("prompts/list", lambda m, a: res(a, prompts=None), full)),
    "tools-twice": ("a tool is there twice", tools(ECHO, ECHO)),
    "one-bad-tool": ("one tool of the list is no tool", tools({"name": 5}, "text", ECHO)),
    "cursor-empty": ("nextCursor \"\" (codebase-memory-mcp#1247)", next_is("")),
    "cursor-same": ("nextCursor does not advance (mcp-proxy#233)", next_is("8")),
    "cursor-endless": ("there is always another page", pages(lambda m, a, asked: res(a, nextCursor=str(int(asked or 0) + 1)))),
    "cursor-null": ("nextCursor null", next_is(None)),
    "cursor-number": ("nextCursor is a number", next_is(8)),
    "cursor-refused": ("the second page is refused", pages(lambda m, a, asked: no(m, -32602, "Invalid cursor") if asked else res(a, nextCursor="8"))),
    "cursor-unanswered": ("the second page never comes", pages(lambda m, a, asked: None if asked else res(a, nextCursor="8"))),
    "tool-null-members": ("members without a value are null: pydantic without exclude_none", tool(description=None, title=None, annotations=None, outputSchema=None)),
    "tool-no-schema": ("a tool without inputSchema", tools({"name": "echo"})),
    "tool-schema-null": ("inputSchema null", tool(inputSchema=None)),
    "tool-more-members": ("members that no version has", tool(category="x", deprecated=False, _meta={"a.b/c": 1})),
    # Versions.
    "version-refused": ("unknown versions are refused (aprender#2393)", refuse(newer, why="Unsupported protocol version")),
    **{"version-" + str(v): ("the server says it is of version %s" % text(v), hello(protocolVersion=v)) for v in (*VERSIONS, "1.0", "2027-01-01", 20250618, None)},
    "info-missing": ("no serverInfo", on(HELLO, lambda m, a: (a["result"].pop("serverInfo"), a)[1])),
    "info-null": ("serverInfo null", hello(serverInfo=None)),
    "instructions-null": ("instructions null: pydantic without exclude_none", hello(instructions=None, _meta=None)),
    # Broken JSON.
    "nan": ("NaN of Python's json.dumps (fastmcp#5150)", call(lambda a: res(a, structuredContent={"mean": float("nan")}))),
    "infinity": ("Infinity of the same", call(lambda a: res(a, structuredContent={"mean": float("-inf")}))),
    "id-member-twice": ("the member id is there twice", call(lambda a: text(a)[:-1] + ',"id":%s}' % text(a["id"]))),
    "result-member-twice": ("the member result is there twice", call(lambda a: text(a)[:-1] + ',"result":%s}' % text(a["result"]))),
    "jsonrpc-member-twice": ("the member jsonrpc is there twice", call(lambda a: text(a)[:-1] + ',"jsonrpc":"2.0"}')),
    "neither": ("neither result nor error", call(lambda a: {"jsonrpc": "2.0", "id": a["id"]})),
    "both": ("result and error", call(lambda a: {**a, "error": {"code": 0, "message": ""}})),
    "method-and-result": ("a response with the method of its request", call(lambda a: {**a, "method": CALL})),
    "trailing-comma": ("JSON written by hand", call(lambda a: text(a)[:-1] + ",}")),
    "python-repr": ("print(answer) in place of JSON", call(lambda a: str(a) if first("repr") else a)),
    "control-character": ("a tab in a string, not escaped", call(lambda a: text(a).replace("OK", "O\tK"))),
    "answer-cut": ("the answer ends in its middle", call(lambda a: text(a)[:-9] if first("cut") else a)),
    "two-in-a-line": ("two messages in one line", call(lambda a: text(note("notifications/x")) + text(a) if first("two") else a)),
    # Noise on stdout.
    **{"noise-" + k: (why, before(x)) for k, why, x in (
        ("json", "log lines in JSON on stdout (azure-mcp#644)", '{"level":"info","msg":"ready"}'),
        ("array", "an empty array", "[]"), ("numbers", "an array of numbers", "[1, 2]"), ("number", "a number", "42"), ("string", "a string", '"text"'),
        ("null", "null", "null"), ("blank", "blank lines", " \n\n"), ("text", "log lines on stdout (ha-mcp#603)", "INFO ready"), ("nul", "NULs", "\0\0\0"),
        ("ansi", "colours", "\x1b[32mready\x1b[0m"), ("envelope", "a message without anything in it", '{"jsonrpc":"2.0"}'),
        ("deep", "2000 levels of arrays", "[" * 2000), ("brace", "a line that begins like JSON", "{ starting"), ("long", "a line of a mebibyte", "x" * 2**20),
        ("bad-utf8", "bytes that are not UTF-8", b"\xff\xfe\xfa\n"), ("utf16", "a line in UTF-16", "ready".encode("utf-16") + b"\n"),
    )},
    "log-before-answer": ("a log text without line break before an answer", call(lambda a: "50% " + text(a) if first("log") else a)),
    "banner": ("npm says what it runs before the server starts", plain),
    "echoes": ("a terminal repeats each request (docker run -t)", lambda m: [raw(m, "\r\n"), raw(plain(m), "\r\n")]),
    "stderr-flood": ("more on stderr than a pipe holds, before each answer", flood),
    "bad-utf8-in-text": ("Latin-1 in a result", call(lambda a: raw(a).replace(b"OK", b"caf\xe9"))),
    "lone-surrogate": ("half of a surrogate pair, escaped", call(lambda a: {**a, "result": said("a\ud800b")})),
    # Framing.
    "content-length": ("headers of the language server protocol (unity-mcp-server#188)", each(lambda a: b"Content-Length: %d\r\n\r\n" % (len(raw(a)) - 1) + raw(a))),
    "pretty": ("answers over many lines (github-mcp-server#179)", each(lambda a: text(a, indent=2))),
    "crlf": ("CRLF", each(lambda a: raw(a, "\r\n"))),
    "bom": ("a byte order mark before each answer", each(lambda a: "\ufeff" + text(a))),
    "spaces": ("spaces and tabs around each answer", each(lambda a: " \t" + text(a, separators=(" , ", " : ")) + " \t")),
    "byte-by-byte": ("an unbuffered stdout", each(lambda a: [bytes([b]) for b in raw(a)])),
    "split-utf8": ("a character in two writes", call(lambda a: [raw({**a, "result": said("\u20ac")})[:-7], 0.05, raw({**a, "result": said("\u20ac")})[-7:]])),
    "long-answer": ("an answer of a mebibyte", call(lambda a: {**a, "result": said("x" * 2**20)})),
    # Text and numbers.
    "odd-text": ("line separators of Unicode, not escaped (claude-agent-sdk-typescript#137)", call(lambda a: text({**a, "result": said(ODD_TEXT)}, ensure_ascii=False))),
    "escaped-text": ("NUL, surrogate pairs and slashes, escaped", call(lambda a: text({**a, "result": said("\0" + ODD_TEXT + "</")}).replace("/", "\\/"))),
    "numbers": ("numbers that a double cannot hold (claude-code#78762)", structured(NUMBERS)),
    "number-1e400": ("a number that is infinite as a double", structured('{"n":1e400}')),
    # The envelope.
    "no-jsonrpc": ("no member jsonrpc", each(lambda a: {k: v for k, v in a.items() if k != "jsonrpc"})),
    "jsonrpc-1.0": ("jsonrpc \"1.0\"", each(lambda a: {**a, "jsonrpc": "1.0"})),
    "jsonrpc-number": ("jsonrpc 2.0, as a number", each(lambda a: {**a, "jsonrpc": 2.0})),
    "error-null": ("error: null beside the result (toolhive#5247)", each(lambda a: {"error": None, **a})),
    "result-null": ("result: null beside the error", unknown(lambda m: {**no(m), "result": None})),
    "array-of-one": ("each answer in an array", each(lambda a: "[" + text(a) + "]")),
    "more-members": ("members that JSON-RPC does not have", each(lambda a: {**a, "time": 1, "_meta": {}, "params": None})),
    "error-text": ("an error that is a string", call(lambda a: {"jsonrpc": "2.0", "id": a["id"], "error": "no"})),
    "error-code-text": ("the code of an error is a string", call(lambda a: {**no(a, "-32000", "no")})),
    "error-without-message": ("an error without message", call(lambda a: {"jsonrpc": "2.0", "id": a["id"], "error": {"code": -32000}})),
    "result-text": ("a result that is a string", call(lambda a: {**a, "result": "OK"})),
    "result-array": ("a result that is an array", call(lambda a: {**a, "result": [said()]})),
    "content-text": ("content is a string", call(lambda a: {**a, "result": {"content": "OK"}})),
    "content-missing": ("a result without content", call(lambda a: {**a, "result": {}})),
    "content-unknown": ("content of a type that no version has", content({"type": "video", "url": "x"}, {"type": "text", "text": "OK"})),
    "content-null-members": ("members without a value are null", content({"type": "text", "text": "OK", "annotations": None, "_meta": None}, isError=None, structuredContent=None)),
    "is-error-text": ("isError \"false\"", content({"type": "text", "text": "OK"}, isError="false")),
    # Progress.
    "progress-token-string": ("progress for \"7\" in place of 7", progress(1, 2, token=str)),
    "progress-made-up": ("progress for a token that nobody has given", call(lambda a: [note(PROGRESS, progressToken="nobody", progress=1), a])),
    "progress-without-token": ("progress without a token", call(lambda a: [note(PROGRESS, progress=1), a])),
    "progress-falling": ("progress that goes back", progress(3, 2, 1)),
    "progress-text": ("progress that is no number", progress("50%")),
    "progress-late": ("progress after the answer", on(CALL, lambda m, a: [a, note(PROGRESS, progressToken=(m["params"].get("_meta") or {}).get("progressToken", m["id"]), progress=1)])),
    # Cancellation.
    "cancelled-is-answered": ("a call is answered although it was cancelled (XcodeMCPKit#210)", on(CALL, held)),
    "cancelled-is-ignored": ("a cancelled call is never answered", on(CALL, held)),
    "dies-of-cancelled": ("a cancellation ends the process", on(CALL, held)),
    # Questions.
    "question-0": ("a question with id 0 (mcp-hangar#876)", ask(0)),
    "question-text-0": ("a question with id \"0\"", ask("0")),
    "question-big": ("a question with an id above 2^53", ask(2**60 + 1)),
    "question-1.5": ("a question with id 1.5", ask(1.5)),
    "question-own-id": ("a question with the id of the client's request", ask(lambda m: m["id"])),
    "question-roots": ("a question for roots that the client may not have", ask("r", "roots/list")),
    "question-unknown": ("a question that no version has", ask("u", "window/showMessage")),
    "question-twice": ("the same question twice, with one id", ask("t", times=2)),
    "question-before-hello": ("the handshake waits for a ping of the client", ask(0, at=HELLO)),
    # Starts and ends.
    "slow-start": ("nothing is read for two seconds: npx, JVM, models", plain),
    "slow-hello": ("initialize takes two seconds", on(HELLO, lambda m, a: [2.0, a])),
    "first-start-fails": ("the first start ends at once, with status 1: a lock, a port", plain),
    "eof-while-calling": ("stdin ends while a call of two seconds runs (python-sdk#2678)", call(lambda a: [2.0, a])),
    "ignores-eof": ("the end of stdin is not seen", plain),
    "exits-after-call": ("the process ends after each call", call(lambda a: leave(1, [a]))),
    "exits-after-list": ("the process ends after the first list", on(LIST, lambda m, a: a if other_start() else leave(1, [a]))),
    "closed-stderr": ("stderr is closed", plain),
    # Notifications.
    "list-changed-after-list": ("each list is said to have changed (BrowserOS#1005)", on(LIST, lambda m, a: [a, note("notifications/tools/list_changed")])),
    "list-changed-storm": ("fifty changes that are none (aspire#14375)", call(lambda a: [note("notifications/tools/list_changed")] * 50 + [a])),
    "list-changed-before-hello": ("a change of tools before initialize is answered", on(HELLO, lambda m, a: [note("notifications/tools/list_changed"), a])),
    "log-before-hello": ("log messages before initialize is answered", on(HELLO, lambda m, a: [note("notifications/message", level="info", data="x"), a])),
    "unknown-notification": ("notifications that no version has", before(note("$/ready"), {"jsonrpc": "2.0", "method": "x", "params": None}, {"jsonrpc": "2.0", "method": "x", "params": [1]})),
    # What is made of requests.
    "ping-refused": ("ping is unknown", on("ping", lambda m, a: no(m))),
    "ping-unanswered": ("ping is never answered", on("ping", lambda m, a: None)),
    "unknown-is-empty": ("unknown methods are answered with {}", unknown(lambda m: ok(m, {}))),
    "unknown-is-null": ("unknown methods are answered with null", unknown(lambda m: ok(m, None))),
    "unknown-is-32600": ("unknown methods are answered with another code", unknown(lambda m: no(m, -32600, "Invalid request"))),
    "unknown-is-silent": ("unknown methods are never answered", unknown(lambda m: None)),
    "unknown-is-death": ("unknown methods end the process", unknown(lambda m: leave())),
    "initialized-needed": ("nothing is answered before notifications/initialized", strict_hello),
    "params-needed": ("a request without params is refused", refuse(lambda m: not isinstance(m.get("params"), dict) and m["method"] != "ping")),
    "meta-refused": ("params with _meta are refused: additionalProperties false", refuse(lambda m: "_meta" in (m.get("params") or {}))),
    "hello-exact": ("initialize with more than its three params is refused", refuse(lambda m: m["method"] == HELLO and len(m["params"]) > 3)),
    "hello-once": ("a second initialize is refused", refuse(lambda m: m["method"] == HELLO and not first(HELLO), -32600, "Already initialized")),
    "list-needed": ("a call is refused until the tools were listed", strict_list),
}

START = {
    "banner": lambda: "\n> odd@1.0.0 start\n> node server.js\n",
    "slow-start": lambda: time.sleep(2),
    "first-start-fails": lambda: other_start() or os._exit(1),
    "closed-stderr": lambda: os.close(2),
}

HEAR = {
    "notification-answered": lambda m: {"jsonrpc": "2.0", "id": None, "result": {}},
    "notification-answered-without-id": lambda m: {"jsonrpc": "2.0", "result": {}},
    "initialized-needed": lambda m: ready.append(m) if m.get("method") == "notifications/initialized" else None,
    "cancelled-is-answered": cancelled,
    "dies-of-cancelled": lambda m: leave() if m.get("method") == "notifications/cancelled" else None,
    **{name: answered for name in FORMS if name.startswith("question-")},
}
