"""A crowd of clients in a process of its own: each asks, waits for the answer and asks again.

`python -m benchmarks.clients` reads the order from standard input and prints one JSON object. The
clients speak plain HTTP over kept connections, with as little work of their own as can be: what
they take of the processor is taken from the service they measure.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

_WARM_SHARE: Final = 0.1  # of the requests, at the beginning, that are not counted
_FOREVER: Final = 10**12
_ROOT: Final = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a crowd shall ask, and for how long."""

    port: int
    path: str
    clients: int
    bodies: Sequence[dict[str, Any]] = ()
    """Asked in turn with POST; none asks with GET."""
    seconds: float = float("inf")
    requests: int = _FOREVER
    """Most requests of all clients together."""

    def request(self, number: int) -> bytes:
        """One request, as it goes over the wire."""
        body = b""
        if self.bodies:
            body = json.dumps(self.bodies[number % len(self.bodies)]).encode()
        lines = (
            f"{'POST' if self.bodies else 'GET'} {self.path} HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        )
        return "\r\n".join((*lines, "", "")).encode() + body


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a crowd saw."""

    requests: int
    errors: int
    """Answers other than 200, and connections that broke."""
    p50_ms: float
    p99_ms: float
    a_second: float


def ask(order: Order) -> Told:
    """Let a crowd ask from a process of its own."""
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.clients"],
        input=json.dumps(asdict(order)),
        stdout=subprocess.PIPE,
        cwd=_ROOT,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise SystemExit(f"the clients ended with exit code {ended.returncode}")
    return Told(**json.loads(ended.stdout))


@dataclass
class Crowd:
    """The clients of one order and what they have seen so far."""

    order: Order
    asked: int = 0
    errors: int = 0
    latencies: list[float] = field(default_factory=list)
    until: float = 0.0

    async def ask_all(self) -> Told:
        """Ask until the time or the requests are used up."""
        wires = [self.order.request(number) for number in range(max(len(self.order.bodies), 1))]
        began = time.perf_counter()
        self.until = began + self.order.seconds
        await asyncio.gather(*(self._be_client(wires) for _ in range(self.order.clients)))
        seconds = time.perf_counter() - began
        counted = self.latencies[int(_WARM_SHARE * len(self.latencies)) :]
        if not counted:
            raise SystemExit(f"nobody got an answer from {self.order.path}")
        p50, p99 = np.percentile(counted, [50, 99]).tolist()
        return Told(
            requests=self.asked,
            errors=self.errors,
            p50_ms=1000 * p50,
            p99_ms=1000 * p99,
            a_second=len(self.latencies) / seconds,
        )

    async def _be_client(self, wires: Sequence[bytes]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.order.port)
        while self.asked < self.order.requests and time.perf_counter() < self.until:
            wire = wires[self.asked % len(wires)]
            self.asked += 1
            began = time.perf_counter()
            writer.write(wire)
            try:
                status = await _answered(reader)
            except (OSError, asyncio.IncompleteReadError):
                self.errors += 1
                return
            if status == 200:
                self.latencies.append(time.perf_counter() - began)
            else:
                self.errors += 1
        writer.close()


async def _answered(reader: asyncio.StreamReader) -> int:
    """The status of the next answer, read to its end."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = head.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0]
    await reader.readexactly(int(length))
    return int(head.split(b" ", 2)[1])


if __name__ == "__main__":
    order = Order(**json.load(sys.stdin))
    print(json.dumps(asdict(asyncio.run(Crowd(order).ask_all()))))
