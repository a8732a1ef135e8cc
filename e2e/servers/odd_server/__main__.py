"""Servers that are odd in one way each: __main__.py stdio FORM, __main__.py web, or __main__.py list.

stdio speaks on stdin and stdout. web reads lines of stdin: "http FORM" (Streamable HTTP) and "sse FORM" (HTTP+SSE of 2024-11-05) start a
server and print its URL, and a URL ends its server; all end with stdin. list prints each form as JSON, by transport and name, with the
reason. No SDK and no dependency, so that nothing is kind.
"""

import json
import sys
import time

import messages


def stdio(name):
    form, hear = messages.FORMS[name][1], messages.HEAR.get(name)

    def send(things):
        for thing in things if isinstance(things, list) else [things]:
            if callable(thing):
                thing()
            elif isinstance(thing, float):
                time.sleep(thing)
            elif thing is not None:
                if not isinstance(thing, bytes):
                    thing = (thing if isinstance(thing, str) else messages.text(thing)).encode() + b"\n"
                sys.stdout.buffer.write(thing)
                sys.stdout.buffer.flush()

    if name in messages.START:
        send([said for said in [messages.START[name]()] if isinstance(said, str)])
    for line in sys.stdin.buffer:
        m = json.loads(line)
        if "method" in m and "id" in m:
            send(form(m))
        elif hear:
            send(hear(m))
    while name == "ignores-eof":
        time.sleep(3600)


def serve():
    ends = {}
    for line in sys.stdin:
        if line in ends:
            ends.pop(line)()
            continue
        for module in ("messages", "web"):  # each server has its own: they keep what it has seen
            sys.modules.pop(module, None)
        import web

        url, end = web.serve(*line.split())
        ends[url + "\n"] = end
        print(url, flush=True)


def show():
    import web

    forms = {"stdio": messages.FORMS, "http": web.HTTP, "sse": web.SSE}
    print(json.dumps({transport: {name: form[0] for name, form in those.items()} for transport, those in forms.items()}))


{"stdio": stdio, "web": serve, "list": show}[sys.argv[1]](*sys.argv[2:])
