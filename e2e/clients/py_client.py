"""The Python SDK client, scriptable: py_client.py auto|legacy|2026-07-28 CMD ARG…|URL

The same steps, results and events as driver.mjs (there they are described). A URL that ends with /sse is spoken to by HTTP+SSE.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings

warnings.simplefilter("ignore")

import anyio  # noqa: E402
import mcp_types as types  # noqa: E402
from mcp import Client, MCPError, StdioServerParameters  # noqa: E402
from mcp.client.sse import sse_client  # noqa: E402
from mcp.client.subscriptions import SubscriptionLost  # noqa: E402


def say(**line) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def failure(e: BaseException) -> dict:
    while isinstance(e, BaseExceptionGroup):
        e = e.exceptions[0]
    if isinstance(e, MCPError):
        return {"code": e.code, "name": "MCPError", "message": str(e)}
    return {"code": 0, "name": type(e).__name__, "message": str(e)}


def plain(result) -> dict:
    return result.model_dump(by_alias=True, mode="json", exclude_none=True) if result is not None else {}


class Driver:
    """Holds what the steps of one session share."""

    def __init__(self, group: anyio.abc.TaskGroup) -> None:
        self.group = group
        self.client: Client | None = None
        self.hold: anyio.Event | None = None
        self.scopes: dict[int, anyio.CancelScope] = {}
        self.listens: dict[str, anyio.CancelScope] = {}

    async def elicit(self, _ctx, params) -> types.ElicitResult:
        say(event="asked", method="elicitation/create", message=params.message)
        try:
            if self.hold is not None:
                await self.hold.wait()
        except anyio.get_cancelled_exc_class():
            say(event="withdrawn", method="elicitation/create")
            raise
        return types.ElicitResult(action="accept", content={"answer": "yes", "name": "e2e"})

    async def sample(self, _ctx, _params) -> types.CreateMessageResult:
        say(event="asked", method="sampling/createMessage")
        content = types.TextContent(type="text", text="fixed reply")
        return types.CreateMessageResult(role="assistant", model="fixed", content=content)

    async def roots(self, _ctx) -> types.ListRootsResult:
        say(event="asked", method="roots/list")
        return types.ListRootsResult(roots=[types.Root(uri="file:///e2e/root", name="root")])

    async def message(self, message) -> None:
        if isinstance(message, Exception):
            say(event="error", message=str(message))
        elif message.method != "notifications/progress":
            params = plain(message.params) if message.params else None
            say(event="notification", method=message.method, params=params)

    async def call(self, step: dict, progress: list) -> dict:
        async def on_progress(value: float, _total, _message) -> None:
            progress.append(value)
            say(event="progress", n=step["n"], progress=value)

        result = await self.client.call_tool(
            step["tool"],
            step.get("args") or {},
            read_timeout_seconds=None if step.get("timeout") == "default" else step.get("timeout", 30_000) / 1000,
            progress_callback=on_progress if step.get("progress") else None,
        )
        return plain(result)

    async def listen(self, uri: str, *, task_status=anyio.TASK_STATUS_IGNORED) -> None:
        with anyio.CancelScope() as scope:
            self.listens[uri] = scope
            try:
                async with self.client.listen(resource_subscriptions=[uri]) as subscription:
                    task_status.started(plain(subscription.honored))
                    async for _event in subscription:
                        pass
                say(event="subscription-ended", how="graceful")
            except SubscriptionLost:
                say(event="subscription-ended", how="remote")

    async def step(self, step: dict, progress: list) -> dict:
        op, client = step["op"], self.client
        modern = client.protocol_version >= "2026"
        if op == "call":
            return await self.call(step, progress)
        if op == "list":
            return plain(await client.list_tools())
        if op == "resources":
            return plain(await client.list_resources())
        if op == "prompts":
            return plain(await client.list_prompts())
        if op == "read":
            return plain(await client.read_resource(step["uri"]))
        if op == "prompt":
            return plain(await client.get_prompt(step["name"], step.get("args")))
        if op == "level":
            return plain(await client.set_logging_level(step["level"]))
        if op == "ping":
            return plain(await (client.list_tools() if modern else client.send_ping()))
        if op == "subscribe" and modern:
            return {"honored": await self.group.start(self.listen, step["uri"])}
        if op == "subscribe":
            return plain(await client.subscribe_resource(step["uri"]))
        if op == "unsubscribe" and modern:
            return self.listens.pop(step["uri"]).cancel() or {}
        if op == "unsubscribe":
            return plain(await client.unsubscribe_resource(step["uri"]))
        if op == "cancel":
            return self.scopes[step["target"]].cancel() or {}
        if op == "hold":
            self.hold = anyio.Event()
            return {}
        if op == "release":
            self.hold, hold = None, self.hold
            hold.set()
            return {}
        raise ValueError(f"no such step: {op}")

    async def run(self, step: dict) -> None:
        progress: list = []
        with anyio.CancelScope() as scope:
            self.scopes[step["n"]] = scope
            try:
                say(n=step["n"], result=await self.step(step, progress), progress=progress)
            except Exception as e:
                say(n=step["n"], error=failure(e), progress=progress)
        if scope.cancelled_caught:
            say(n=step["n"], error={"code": 0, "name": "cancelled", "message": "cancelled"}, progress=progress)


async def main() -> None:
    mode, command, *args = sys.argv[1:]
    if command.startswith("http"):
        server = sse_client(command) if command.endswith("/sse") else command
    else:
        server = StdioServerParameters(command=command, args=args, env=dict(os.environ))
    started = time.monotonic()
    closing = None
    connected = False
    try:
        async with anyio.create_task_group() as group:
            driver = Driver(group)
            async with Client(
                server,
                mode=mode,
                log_level="debug",
                sampling_callback=driver.sample,
                elicitation_callback=driver.elicit,
                list_roots_callback=driver.roots,
                message_handler=driver.message,
                cache=None,
            ) as driver.client:
                version, info = driver.client.protocol_version, driver.client.server_info
                era = "modern" if version >= "2026" else "legacy"
                ms = round((time.monotonic() - started) * 1000)
                capabilities = plain(driver.client.server_capabilities)
                say(n=0, result={"era": era, "version": version, "server": plain(info), "capabilities": capabilities, "ms": ms})
                connected = True
                async for line in anyio.wrap_file(sys.stdin):
                    step = json.loads(line)
                    if step["op"] == "close":
                        closing = (step["n"], time.monotonic())
                        break
                    group.start_soon(driver.run, step)
                group.cancel_scope.cancel()
    except BaseException as e:
        if not connected:
            say(n=0, error=failure(e), ms=round((time.monotonic() - started) * 1000))
            return
        if closing is None:
            say(event="error", message=str(failure(e)))
    if closing is not None:
        say(n=closing[0], result={"ms": round((time.monotonic() - closing[1]) * 1000)})


anyio.run(main)
