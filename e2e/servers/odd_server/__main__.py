"""Servers that are odd in one way each: odd_server stdio|http|sse FORM, or odd_server list.

stdio speaks on stdin and stdout. http (Streamable HTTP) and sse (HTTP+SSE of 2024-11-05) print their URL and end with stdin. list
prints each form as JSON, by transport and name, with the reason. No SDK and no dependency, so that nothing is kind.
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


def main(transport, name=None):
    if transport == "stdio":
        return stdio(name)
    import web

    if transport == "list":
        forms = {"stdio": messages.FORMS, "http": web.HTTP, "sse": web.SSE}
        return print(json.dumps({t: {n: f[0] for n, f in all.items()} for t, all in forms.items()}))
    web.serve(transport, name)


main(*sys.argv[1:])
