"""Servers on HTTP that are odd: HTTP (Streamable HTTP, /mcp) and SSE (HTTP+SSE, /sse), by name, each with the reason and what is odd.

A form of HTTP is a function from a request to what is written: bytes go out as they are, a number is a pause in seconds, None ends
the connection. A form of SSE is a dict of what differs from OLD.
"""

import contextlib
import queue
import socket
import threading
import time

import messages
from messages import CALL, HELLO, each, no, plain, raw, text

STREAM = "text/event-stream"


class Request:
    def __init__(self, file):
        line = file.readline()
        if not line.strip():
            raise EOFError
        self.method, self.path, _ = line.decode().split(" ", 2)
        self.headers = {}
        while (line := file.readline().strip()):
            key, _, value = line.decode("latin-1").partition(":")
            self.headers[key.lower()] = value.strip()
        body = file.read(int(self.headers.get("content-length", 0)))
        self.m = messages.json.loads(body) if body else {}
        self.asks = "method" in self.m and "id" in self.m  # for an answer
        self.tells = self.method == "POST" and not self.asks
        self.session = self.headers.get("mcp-session-id")


def reply(code, body=b"", kind="application/json", *headers, length=True):
    body = body.encode() if isinstance(body, str) else body
    head = [f"HTTP/1.1 {code} Odd", *([f"Content-Type: {kind}"] if kind else []), *([f"Content-Length: {len(body)}"] if length else []), *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def usual(r, session="s1"):
    """What a server answers that is not odd."""
    if r.method != "POST":
        return reply(405 if r.method == "GET" else 200)
    if not r.asks:
        return reply(202)
    return reply(200, text(plain(r.m)), "application/json", *([f"Mcp-Session-Id: {session}"] if r.m["method"] == HELLO else []))


def spoken(form):
    """A form of messages, over HTTP: several things, or none, are a stream."""
    def f(r):
        if not r.asks:
            return usual(r)
        things = form(r.m)
        things = things if isinstance(things, list) else [things]
        if len(things) == 1 and things[0] is not None:
            body = things[0] if isinstance(things[0], (str, bytes)) else text(things[0])
            return reply(200, body)
        if things == [None]:
            return [3600.0]
        return [reply(200, b"", STREAM, "Connection: close", length=False), *(t if isinstance(t, float) else event(t) for t in things), None]
    return f


def data(t):
    return f"data: {t}\n\n"


def event(thing):
    return b"data: " + raw(thing, "\n\n")


def when(test, answer):
    return lambda r: (answer(r) if callable(answer) else answer) if test(r) else usual(r)


def notified(*of):
    """What a notification is answered with."""
    return when(lambda r: r.tells, reply(*of))


def got(*of, **how):
    """What GET is answered with."""
    return when(lambda r: r.method == "GET", reply(*of, **how))


def asked(f):
    """What a request is answered with, made of the JSON that is due."""
    return when(lambda r: r.asks, lambda r: f(text(plain(r.m))))


def called(f):
    return when(lambda r: r.m.get("method") == CALL and r.asks, f)


def stream(f):
    """Each answer as a stream, with the bytes that f makes of its JSON."""
    def write(t):
        parts = f(t)
        return [reply(200, b"", STREAM, "Connection: close", length=False), *(parts if isinstance(parts, list) else [parts]), None]
    return asked(write)


def moved(code, to="/mcp/"):
    return when(lambda r: r.path == "/mcp", lambda r: reply(code, b"", "text/html", "Location: " + (to if to[0] == "/" else f"http://{r.headers['host']}/mcp/")))


sessions = []


def forgets(*of):
    """The first session is forgotten after its first call; then its id is answered like this."""
    def f(r):
        if r.m.get("method") == HELLO:
            sessions.append("open")
            return usual(r, f"s{len(sessions)}")
        if r.session and sessions and sessions[int(r.session[1:]) - 1] == "gone":
            return reply(*of)
        if r.m.get("method") == CALL and len(sessions) == 1:
            sessions[0] = "gone"
        return usual(r)
    return f


def once(*of):
    """The first call is answered like this."""
    return called(lambda r: reply(*of) if messages.first(CALL) else usual(r))


def needs(header, ok, code):
    """Requests after initialize whose header is not as it must be are refused."""
    return when(lambda r: r.method == "POST" and r.m.get("method") != HELLO and not ok(r.headers.get(header, "")), reply(code))


def cookie(r):
    if r.m.get("method") == HELLO:
        return usual(r).replace(b"\r\n", b"\r\nSet-Cookie: AWSALB=a; Path=/\r\n", 1)
    if r.method == "POST" and "AWSALB=a" not in r.headers.get("cookie", ""):
        return reply(404, text(no({"id": None}, -32001, "Session not found")))
    return usual(r)


def changing(r):
    sessions.append(r)
    if not r.asks or r.m["method"] == HELLO:
        return usual(r)
    return usual(r).replace(b"\r\n", b"\r\nMcp-Session-Id: s%d\r\n" % len(sessions), 1)


def packed(t):
    import gzip

    return reply(200, gzip.compress(t.encode()), "application/json", "Content-Encoding: gzip")


def chunked(t):
    return [reply(200, b"", "application/json", "Transfer-Encoding: chunked", length=False), *(b"1\r\n%c\r\n" % b for b in t.encode()), b"0\r\n\r\n"]


def unknown(r):
    return r.asks and r.m["method"] not in messages.KNOWN


def wrong(code, message):
    return reply(code, text(no({"id": None}, -32001, message)))


BOM = "\ufeff"
SPOKEN = (
    "id-string id-string-calls id-float answered-twice caps-empty caps-null caps-missing prompts-unanswered lists-refused cursor-empty cursor-same "
    "cursor-refused tool-null-members one-bad-tool version-2024-11-05 version-1.0 info-missing nan id-member-twice result-member-twice neither both "
    "method-and-result trailing-comma odd-text numbers no-jsonrpc error-null array-of-one error-text result-text content-null-members "
    "progress-token-string progress-made-up unknown-is-empty unknown-is-32600 meta-refused long-answer reads-integers-only"
).split()

HTTP = {
    "plain": ("not odd: the control of this table", usual),
    **{name: (messages.FORMS[name][0], spoken(messages.FORMS[name][1])) for name in SPOKEN},
    # What a notification is answered with.
    "note-200-null": ("a notification is answered with null (rust-sdk#849)", notified(200, "null")),
    "note-200-html": ("a notification is answered with a page", notified(200, "<p>ok</p>", "text/html")),
    "note-200-object": ("a notification is answered with {}", notified(200, "{}")),
    "note-id-null": ("a notification is answered with a response of id null", notified(200, '{"jsonrpc":"2.0","id":null,"result":{}}')),
    "note-ok": ("a notification is answered with OK", notified(200, "OK", "text/plain")),
    "note-204": ("a notification is answered with 204", notified(204, b"", "")),
    "note-stream": ("a notification is answered with an empty stream (java-sdk#588)", notified(200, b"", STREAM)),
    "note-stays-open": ("a notification is answered with a stream that stays open", when(lambda r: r.tells, [reply(200, b"", STREAM, length=False), 3600.0])),
    "note-400": ("a notification is answered with 400", notified(400)),
    "note-500": ("a notification is answered with 500", notified(500)),
    # What GET is answered with.
    "get-404": ("GET is answered with 404", got(404)),
    "get-400": ("GET is answered with 400", got(400, "Bad Request", "text/plain")),
    "get-500": ("GET is answered with 500", got(500)),
    "get-page": ("GET is answered with a page", got(200, "<p>MCP</p>", "text/html")),
    "get-json": ("GET is answered with JSON", got(200, '{"status":"ok"}')),
    "get-wrong-length": ("GET is answered with 405 and a length that is too long", when(lambda r: r.method == "GET", [reply(405, b"", "", "Content-Length: 99", length=False), None])),
    "get-ends": ("the stream of GET ends at once, always", got(200, b"", STREAM)),
    # Sessions.
    "lost-404": ("a session is forgotten: 404 (mcp-remote#106)", forgets(404, '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}')),
    "lost-404-page": ("a session is forgotten: 404 with a page", forgets(404, "<p>Not Found</p>", "text/html")),
    "lost-400": ("a session is forgotten: 400 (supergateway#123)", forgets(400, '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}')),
    "lost-400-new": ("a session is forgotten by a server that has one only (claude-code#55970)", forgets(400, '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}')),
    "lost-400-text": ("a session is forgotten: 400 with a text", forgets(400, "Invalid session ID", "text/plain")),
    "no-session": ("a server without sessions", when(lambda r: r.asks, lambda r: reply(200, text(plain(r.m))))),
    "session-changes": ("each response has another session id", changing),
    "cookie": ("a balancer needs its cookie (mcp-remote#168)", cookie),
    # Streams.
    "sse-plain": ("answers as streams", stream(data)),
    "sse-crlf": ("CRLF (java-sdk#443)", stream(lambda t: f"event: message\r\ndata: {t}\r\n\r\n")),
    "sse-cr": ("CR", stream(lambda t: f"event: message\rdata: {t}\r\r")),
    "sse-lines": ("an event of several data lines", stream(lambda t: "".join(f"data: {line}\n" for line in messages.json.dumps(messages.json.loads(t), indent=1).split("\n")) + "\n")),
    "sse-no-space": ("no space behind the colon", stream(lambda t: f"data:{t}\n\n")),
    "sse-comments": ("comments and retry before the event", stream(lambda t: ": hello\n\nretry: 10000\n\n:\n" + data(t))),
    "sse-ping": ("ping events", stream(lambda t: "event: ping\ndata: {}\n\n" + data(t))),
    "sse-empty-data": ("an event with empty data before the answer (python-sdk#1670)", stream(lambda t: "id: 1\ndata:\n\n" + data(t))),
    "sse-bom": ("a byte order mark", stream(lambda t: BOM + data(t))),
    "sse-done": ("[DONE] at the end, as for completions", stream(lambda t: data(t) + "data: [DONE]\n\n")),
    "sse-array": ("an event with an array of one", stream(lambda t: data(f"[{t}]"))),
    "sse-unfinished": ("the stream ends without the blank line", stream(lambda t: f"data: {t}\n")),
    "sse-stays-open": ("the stream stays open after the answer (sh1pt#705)", stream(lambda t: [data(t).encode(), 3600.0])),
    "sse-bytes": ("each byte in a packet", stream(lambda t: [bytes([b]) for b in data(t).encode()])),
    "sse-other-name": ("the event has a name of its own", stream(lambda t: "event: response\n" + data(t))),
    "sse-as-json": ("a stream that says it is JSON", asked(lambda t: reply(200, data(t)))),
    "json-as-sse": ("JSON that says it is a stream", asked(lambda t: reply(200, t, STREAM))),
    # Redirects.
    "moved-307": ("/mcp leads to /mcp/ (WikidataMCP#3)", moved(307)),
    "moved-308": ("the same for good", moved(308)),
    "moved-307-absolute": ("the same with an absolute address", moved(307, "http")),
    "moved-301": ("the same by 301, which makes GET of POST", moved(301)),
    # Bodies and heads.
    "text-plain": ("JSON that says it is text", asked(lambda t: reply(200, t, "text/plain"))),
    "charset": ("a type with a charset in other letters", asked(lambda t: reply(200, t, "Application/JSON; Charset=UTF-8"))),
    "json-rpc-type": ("JSON that says it is JSON-RPC", asked(lambda t: reply(200, t, "application/json-rpc"))),
    "no-type": ("no Content-Type", asked(lambda t: reply(200, t, ""))),
    "gzip": ("gzip, wanted or not", asked(packed)),
    "body-bom": ("a byte order mark", asked(lambda t: reply(200, BOM + t))),
    "body-blank": ("blank lines around the answer", asked(lambda t: reply(200, "\n\n" + t + "\n\n"))),
    "status-201": ("201", asked(lambda t: reply(201, t))),
    "status-202": ("202 with the answer", asked(lambda t: reply(202, t))),
    "http-1.0": ("HTTP/1.0", when(lambda r: True, lambda r: [usual(r).replace(b"HTTP/1.1", b"HTTP/1.0", 1), None])),
    "no-length": ("the end of the connection ends the answer", asked(lambda t: [reply(200, t, length=False), None])),
    "chunk-a-byte": ("chunks of one byte", asked(chunked)),
    "closes": ("the connection is closed after each answer, without a word", when(lambda r: True, lambda r: [usual(r), None])),
    "delete-hangs": ("DELETE is never answered", when(lambda r: r.method == "DELETE", [3600.0])),
    "delete-500": ("DELETE is answered with 500", when(lambda r: r.method == "DELETE", reply(500))),
    # Refusals.
    "unknown-404": ("an unknown method is answered with 404", when(unknown, lambda r: reply(404, text(plain(r.m))))),
    "unknown-400": ("an unknown method is answered with 400", when(unknown, lambda r: reply(400, text(plain(r.m))))),
    "unknown-500": ("an unknown method is answered with 500", when(unknown, reply(500, "Internal Server Error", "text/plain"))),
    "call-400": ("a call is answered with 400 and an error", called(lambda r: reply(400, text(no(r.m, -32602, "no"))))),
    "call-400-null": ("a call is answered with 400 and an error of id null", called(wrong(400, "no"))),
    "call-403": ("a call is answered with 403", called(reply(403, "Forbidden", "text/plain"))),
    "call-422": ("a call is answered with 422 and the detail of FastAPI", called(reply(422, '{"detail":[{"msg":"field required"}]}'))),
    "call-empty": ("a call is answered with nothing", called(reply(200))),
    "call-202": ("a call is answered with 202 and nothing", called(reply(202))),
    "call-page": ("a call is answered with a page", called(reply(200, "<p>Log in</p>", "text/html"))),
    "call-cut": ("the answer of a call ends in its middle", called(lambda r: [reply(200, b'{"jsonrpc":', "application/json", "Content-Length: 99", length=False), None])),
    "busy-429": ("the first call is answered with 429", once(429, "", "text/plain", "Retry-After: 1")),
    "busy-503": ("the first call is answered with 503", once(503, "", "text/plain", "Retry-After: 1")),
    "accept-needed": ("406 unless both types are accepted", needs("accept", lambda v: "application/json" in v and STREAM in v, 406)),
    "type-needed": ("415 unless the type is application/json alone", needs("content-type", lambda v: v == "application/json", 415)),
    "version-needed": ("400 without MCP-Protocol-Version", needs("mcp-protocol-version", bool, 400)),
}

OLD = {"first": b"", "endpoint": "/messages?sessionId=1", "refuse": 405, "code": 202, "event": lambda t: f"event: message\ndata: {t}\n\n", "form": plain}
SSE = {
    "plain": ("not odd: the control of this table", {}),
    "id-string": (messages.FORMS["id-string"][0], {"form": each(lambda a: messages.id_as(str, a))}),
    "odd-text": (messages.FORMS["odd-text"][0], {"form": messages.FORMS["odd-text"][1]}),
    "nan": (messages.FORMS["nan"][0], {"form": messages.FORMS["nan"][1]}),
    # What comes before the endpoint.
    "first-comment": ("a comment before the endpoint", {"first": b": hello\n\n"}),
    "first-retry": ("retry: before the endpoint (fast-mcp#160)", {"first": b"retry: 3000\n\n"}),
    "first-ping": ("event: ping before the endpoint", {"first": b"event: ping\ndata: 1\n\n"}),
    "first-open": ("event: open before the endpoint", {"first": b"event: open\ndata: connected\n\n"}),
    "first-bom": ("a byte order mark before the endpoint", {"first": BOM.encode()}),
    "endpoint-late": ("the endpoint comes after a second", {"late": 1.0}),
    # What POST /sse is answered with.
    **{f"post-{code}": (f"POST is answered with {code} (mcp-go#420)", {"refuse": code}) for code in (400, 403, 404, 406, 415, 419, 422, 501)},
    "post-stream": ("POST begins the stream, too (quarkus-mcp-server#317)", {"refuse": None}),
    # The endpoint.
    "endpoint-relative": ("the endpoint without a slash", {"endpoint": "messages?sessionId=1"}),
    "endpoint-dot": ("the endpoint begins with ./", {"endpoint": "./messages"}),
    "endpoint-dots": ("the endpoint begins with ../", {"endpoint": "../messages"}),
    "endpoint-absolute": ("the endpoint is a whole address", {"endpoint": "http://HOST/messages"}),
    "endpoint-query": ("the endpoint is a query only", {"endpoint": "?sessionId=1"}),
    "endpoint-spaces": ("spaces around the endpoint", {"endpoint": " /messages?sessionId=1 "}),
    "endpoint-twice": ("the endpoint comes twice", {"first": b"event: endpoint\ndata: /messages?sessionId=1\n\n"}),
    # Events and answers.
    "event-crlf": ("CRLF", {"event": lambda t: f"event: message\r\ndata: {t}\r\n\r\n"}),
    "event-no-name": ("events without a name", {"event": data}),
    "event-no-space": ("no space behind the colon", {"event": lambda t: f"event:message\ndata:{t}\n\n"}),
    "event-ping": ("ping events between answers", {"event": lambda t: f"event: ping\ndata: 1\n\nevent: message\ndata: {t}\n\n"}),
    "code-200": ("messages are answered with 200", {"code": 200}),
    "code-204": ("messages are answered with 204", {"code": 204}),
    "answer-first": ("the answer comes before the 202 of its request", {"early": True}),
    "stream-ends": ("the stream ends after each call", {"ends": True}),
}


def answer(conn, out):
    """Write what a form has made."""
    for part in out if isinstance(out, list) else [out]:
        if part is None:
            conn.shutdown(socket.SHUT_RDWR)
            raise EOFError
        if isinstance(part, float):
            time.sleep(part)
        else:
            conn.sendall(part.encode() if isinstance(part, str) else part)


def old(how):
    """A server of HTTP+SSE, as a function from a request to what is written."""
    how = {**OLD, **how}
    streams = []

    def listen(r):
        streams.append(mine := queue.Queue())
        endpoint = how["endpoint"].replace("HOST", r.headers["host"])
        yield reply(200, b"", STREAM, "Connection: close", length=False) + how["first"]
        yield how.get("late", 0.0)
        yield f"event: endpoint\ndata: {endpoint}\n\n"
        while (thing := mine.get()) is not None:
            yield how["event"](thing)

    def f(r):
        if r.method == "GET":
            return listen(r)
        if r.path == "/sse" or not streams:
            return reply(how["refuse"]) if how["refuse"] else listen(r)
        if not r.asks:
            return reply(how["code"], b"", "")
        a = how["form"](r.m)
        streams[-1].put(a if isinstance(a, str) else text(a))
        if how.get("ends") and r.m["method"] == CALL:
            streams[-1].put(None)
        return [*([0.2] if how.get("early") else []), reply(how["code"], b"", "")]
    return f


def serve(transport, name):
    """Start the server of a form. Its URL, and a function that ends it."""
    form = HTTP[name][1] if transport == "http" else old(SSE[name][1])
    sockets = [listener := socket.create_server(("127.0.0.1", 0))]

    def connection(conn):
        with conn, conn.makefile("rb") as file:
            try:
                while True:
                    r = Request(file)
                    out = form(r)
                    if hasattr(out, "__next__"):  # a stream, as it comes
                        for part in out:
                            answer(conn, part)
                        return
                    answer(conn, out)
            except (EOFError, OSError):
                pass

    def accept():
        with contextlib.suppress(OSError):  # it has ended
            while True:
                conn, _ = listener.accept()
                conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sockets.append(conn)
                threading.Thread(target=connection, args=(conn,), daemon=True).start()

    def end():
        for each in sockets:
            with contextlib.suppress(OSError):  # it is closed
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    threading.Thread(target=accept, daemon=True).start()
    return "http://127.0.0.1:%d/%s" % (listener.getsockname()[1], "mcp" if transport == "http" else "sse"), end
