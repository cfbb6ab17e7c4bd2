"""HTTP clients in their own process: each sends a request, waits for the response, and repeats.

`python -m benchmarks.clients` reads a Load from standard input and prints one JSON object. The
clients use plain HTTP over persistent connections and do little work themselves, because they
share the processor with the service that they measure.
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

_WARM_UP_SHARE: Final = 0.1  # of the requests, at the start; their latency is not counted
_UNLIMITED: Final = 10**12
_ROOT: Final = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, kw_only=True)
class Load:
    """Which requests the clients send, and for how long."""

    port: int
    path: str
    clients: int
    bodies: Sequence[dict[str, Any]] = ()
    """Sent in turn with POST; without bodies the requests are GET."""
    seconds: float = float("inf")
    requests: int = _UNLIMITED
    """Upper limit for all clients together."""

    def request(self, number: int) -> bytes:
        """The bytes of one request."""
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
class LoadReport:
    """Number, errors, latency and rate of the requests."""

    requests: int
    errors: int
    """Responses other than 200, and broken connections."""
    p50_ms: float
    p99_ms: float
    per_second: float


def send(load: Load) -> LoadReport:
    """Send the requests from another process."""
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.clients"],
        input=json.dumps(asdict(load)),
        stdout=subprocess.PIPE,
        cwd=_ROOT,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise SystemExit(f"the clients ended with exit code {ended.returncode}")
    return LoadReport(**json.loads(ended.stdout))


@dataclass
class Clients:
    """The clients of one load, and their measurements so far."""

    load: Load
    sent: int = 0
    errors: int = 0
    latencies: list[float] = field(default_factory=list)
    until: float = 0.0

    async def send_all(self) -> LoadReport:
        """Send requests until the time or their number is used up."""
        wires = [self.load.request(number) for number in range(max(len(self.load.bodies), 1))]
        began = time.perf_counter()
        self.until = began + self.load.seconds
        await asyncio.gather(*(self._run_client(wires) for _ in range(self.load.clients)))
        seconds = time.perf_counter() - began
        counted = self.latencies[int(_WARM_UP_SHARE * len(self.latencies)) :]
        if not counted:
            raise SystemExit(f"no successful response from {self.load.path}")
        p50, p99 = np.percentile(counted, [50, 99]).tolist()
        return LoadReport(
            requests=self.sent,
            errors=self.errors,
            p50_ms=1000 * p50,
            p99_ms=1000 * p99,
            per_second=len(self.latencies) / seconds,
        )

    async def _run_client(self, wires: Sequence[bytes]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.load.port)
        while self.sent < self.load.requests and time.perf_counter() < self.until:
            wire = wires[self.sent % len(wires)]
            self.sent += 1
            began = time.perf_counter()
            writer.write(wire)
            try:
                status = await _status(reader)
            except (OSError, asyncio.IncompleteReadError):
                self.errors += 1
                return
            if status == 200:
                self.latencies.append(time.perf_counter() - began)
            else:
                self.errors += 1
        writer.close()


async def _status(reader: asyncio.StreamReader) -> int:
    """The status of the next response, read to its end."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = head.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0]
    await reader.readexactly(int(length))
    return int(head.split(b" ", 2)[1])


if __name__ == "__main__":
    load = Load(**json.load(sys.stdin))
    print(json.dumps(asdict(asyncio.run(Clients(load).send_all()))))
