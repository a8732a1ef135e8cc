"""The Python SDK's client: calls a tool for two seconds, says "kill", goes on calling for some seconds, and prints what it saw as JSON.

sdkclient.py URL BYTES
"""

import asyncio
import json
import statistics
import sys
import time
import warnings

warnings.simplefilter("ignore")

from mcp import Client  # noqa: E402

QUIET, AFTER, LIMIT = 2.0, 12.0, 10.0  # seconds: before the kill, after it at most, for one call
ENOUGH = 3.0  # seconds after the kill: whoever serves then has come back


async def call(client: Client, tool: str, message: str) -> bool:
    try:
        result = await client.call_tool(tool, {"message": message}, read_timeout_seconds=LIMIT)
        return not result.is_error and result.content[0].text == message
    except Exception:  # whatever it is, it is a failed call
        return False


async def main(url: str, size: int) -> None:
    message = "z" * size
    async with Client(url, mode="legacy") as client:
        tools = (await client.list_tools()).tools
        tool = next(t.name for t in tools if t.name.endswith("echo"))
        trips, begin = [], time.monotonic()
        while time.monotonic() - begin < QUIET:
            before = time.monotonic()
            if not await call(client, tool, message):
                raise SystemExit("a call failed before the kill")
            trips.append(time.monotonic() - before)
        rate = len(trips) / (time.monotonic() - begin)
        print("kill", flush=True)
        calls = failed = 0
        longest, good, begin = 0.0, time.monotonic(), time.monotonic()
        while time.monotonic() - begin < AFTER:
            calls += 1
            if await call(client, tool, message):
                longest, good = max(longest, time.monotonic() - good), time.monotonic()
                if good - begin > ENOUGH:
                    break
            else:
                failed += 1
                await asyncio.sleep(0.005)
        back = time.monotonic() - good < 1
        print(json.dumps({
            "Rate": rate, "P50": statistics.median(trips) * 1000, "Calls": calls, "Failed": failed,
            "Longest": longest * 1000 if back else -1,
        }), flush=True)


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
