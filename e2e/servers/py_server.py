"""The Python SDK server of the end-to-end tests.

It appends its pid to $E2E_DIR/pids when it starts and one line per tool execution to $E2E_DIR/trace, so that a
test can prove what ran how often, in which process. --slow-start SECONDS delays the start.
"""

from __future__ import annotations

import os
import signal
import sys
import time

DIR = os.environ["E2E_DIR"]


def append(name: str, line: str) -> None:
    fd = os.open(os.path.join(DIR, name), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(fd, (line + "\n").encode())
    os.close(fd)


append("pids", str(os.getpid()))
if "--slow-start" in sys.argv:
    time.sleep(float(sys.argv[sys.argv.index("--slow-start") + 1]))

import warnings  # noqa: E402

warnings.simplefilter("ignore")

from typing import Annotated  # noqa: E402

import anyio  # noqa: E402
import mcp_types as types  # noqa: E402
from mcp.server.mcpserver import Context, MCPServer  # noqa: E402
from mcp.server.mcpserver.exceptions import ToolError  # noqa: E402
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample  # noqa: E402
from pydantic import BaseModel  # noqa: E402

READ_ONLY = types.ToolAnnotations(read_only_hint=True)
IDEMPOTENT = types.ToolAnnotations(read_only_hint=False, idempotent_hint=True, destructive_hint=False)
ITEM = "test://item"

server = MCPServer("py-server", version="1.0.0", log_level="ERROR")
subscribed: set[str] = set()
level = "none"


def trace(tool: str, value: str) -> None:
    append("trace", f"{time.time_ns() // 1_000_000} {os.getpid()} {tool} {value}")


async def run(tool: str, value: str, ms: int) -> str:
    trace(tool, value)
    if ms:
        await anyio.sleep(ms / 1000)
    trace(f"{tool}-done", value)
    return f"{tool} {value} {os.getpid()}"


@server.tool(annotations=READ_ONLY, structured_output=False)
async def echo(text: str) -> str:
    return text


@server.tool(structured_output=False)
async def bump(value: str, ms: int = 0) -> str:
    return await run("bump", value, ms)


@server.tool(annotations=READ_ONLY, structured_output=False)
async def look(value: str, ms: int = 0) -> str:
    return await run("look", value, ms)


@server.tool(annotations=IDEMPOTENT, structured_output=False)
async def idem(value: str, ms: int = 0) -> str:
    return await run("idem", value, ms)


@server.tool(annotations=READ_ONLY, structured_output=False)
async def slow(value: str, steps: int, ms: int, ctx: Context) -> str:
    trace("slow", value)
    try:
        for step in range(1, steps + 1):
            await anyio.sleep(ms / 1000)
            await ctx.report_progress(step, steps)
            trace("slow-step", f"{value}/{step}")
        await anyio.sleep(0.1)  # some clients handle an answer before the notification that came just before it
    except anyio.get_cancelled_exc_class():
        trace("slow-cancelled", value)
        raise
    return f"slow {value} {os.getpid()}"


@server.tool(annotations=READ_ONLY, structured_output=False)
async def fail() -> str:
    raise ToolError("failed on purpose")


@server.tool(annotations=READ_ONLY, structured_output=False)
async def fail() -> str:
    raise ToolError("failed on purpose")


@server.tool(annotations=READ_ONLY, structured_output=False)
async def pid() -> str:
    return str(os.getpid())


class Answer(BaseModel):
    answer: str


def ask_user(question: str) -> Elicit[Answer]:
    trace("elicit-asked", question)
    return Elicit(question, Answer)


def ask_model(text: str) -> Sample:
    trace("sample-asked", text)
    return Sample([types.SamplingMessage(role="user", content=types.TextContent(type="text", text=text))], max_tokens=16)


def ask_roots() -> ListRoots:
    trace("roots-asked", "-")
    return ListRoots()


@server.tool(structured_output=False)
async def elicit(question: str, reply: Annotated[Answer, Resolve(ask_user)]) -> str:
    trace("elicit", question)
    return f"elicited {reply.answer}"


@server.tool(structured_output=False)
async def sample(text: str, reply: Annotated[types.CreateMessageResult, Resolve(ask_model)]) -> str:
    trace("sample", text)
    return f"sampled {reply.content.text}"


@server.tool(structured_output=False)
async def roots(reply: Annotated[types.ListRootsResult, Resolve(ask_roots)]) -> str:
    trace("roots", "-")
    return "roots " + " ".join(str(r.uri) for r in reply.roots)


@server.tool(annotations=READ_ONLY, structured_output=False)
async def touch(ctx: Context, uri: str = ITEM) -> str:
    await ctx.notify_resource_updated(uri)
    if uri in subscribed:
        await ctx.session.send_resource_updated(uri)
    return "touched"


@server.tool(annotations=READ_ONLY, structured_output=False)
async def log(text: str, ctx: Context) -> str:
    await ctx.info(text)
    return level


@server.tool(structured_output=False)
async def leave(code: int) -> str:
    """Answers, then exits with the code (0, 42, anything else)."""

    async def later() -> None:
        await anyio.sleep(0.5)
        os._exit(code)

    import asyncio

    asyncio.get_running_loop().create_task(later())
    return f"leaving {code}"


@server.tool(structured_output=False)
async def die() -> str:
    """Dies by SIGKILL without an answer."""
    trace("die", "-")
    os.kill(os.getpid(), signal.SIGKILL)
    return "unreachable"


@server.tool(structured_output=False)
async def marker() -> str:
    print("__MCP_RESTART_REQUEST__", file=sys.stderr, flush=True)
    return "restart requested"


@server.resource(ITEM, mime_type="text/plain")
async def item() -> str:
    return f"item {os.getpid()}"


@server.prompt()
async def hello(name: str) -> str:
    return f"hello {name}"


async def on_subscribe(_ctx, params: types.SubscribeRequestParams) -> types.EmptyResult:
    trace("subscribe", str(params.uri))
    subscribed.add(str(params.uri))
    return types.EmptyResult()


async def on_unsubscribe(_ctx, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    trace("unsubscribe", str(params.uri))
    subscribed.discard(str(params.uri))
    return types.EmptyResult()


async def on_set_level(_ctx, params: types.SetLevelRequestParams) -> types.EmptyResult:
    global level
    level = params.level
    trace("level", level)
    return types.EmptyResult()


low = server._lowlevel_server
low.add_request_handler("resources/subscribe", types.SubscribeRequestParams, on_subscribe)
low.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, on_unsubscribe)
low.add_request_handler("logging/setLevel", types.SetLevelRequestParams, on_set_level)

if __name__ == "__main__":
    server.run("stdio")
