"""Several worker processes that answer on one port and share the memory of the loaded runs.

    supervisor        has the socket and the signals; loads nothing
    └── generation    receives the loaded runs, forks the workers, replaces one that dies
        ├── loader    loads and checks the runs, sends them to the generation, ends
        └── worker    a service of its own: event loop, connections to the store, threads

A reload starts a second generation. Once its workers accept connections, the former one accepts no
more, finishes its requests and ends. A fork copies no memory that is only read, but it also copies
no thread: the generation must not start any, so another process loads (`handover`).
"""

import asyncio
import os
import pickle
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Protocol

from castpoi.core.errors import BadInput, ServiceFailed
from castpoi.serving.logs import log_event, log_failure
from castpoi.serving.middleware import METRICS_FOLDER
from castpoi.serving.reloads import SharedReload
from castpoi.serving.schema import ModelCard

if TYPE_CHECKING:  # these import torch, which the supervisor does not need
    from castpoi.serving.handover import Recommenders
    from castpoi.serving.service import Service

PAUSE_SECONDS: Final = 1.0
"""Before a process that died is replaced."""
_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
ACCEPTS: Final = None
"""The message of a worker that accepts connections."""


class MakeService(Protocol):
    """Makes the service of a process; it can be pickled."""

    def __call__(
        self,
        *,
        report: Callable[[str], None],
        loaded: "Recommenders | None" = None,
        reload: Callable[[], Awaitable[ModelCard]] | None = None,
    ) -> "Service":
        """A service that reads its runs, or one whose runs are `loaded` already.

        `report` receives sentences for the terminal.
        """


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """The runs that a new generation has loaded, and the size of its store."""

    card: ModelCard
    users: int
    visits: int


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a generation needs; passed to its process."""

    make: MakeService
    listening: socket.socket
    workers: int
    supervisor: str  # the path of the socket on which the supervisor reloads


def serve_with_workers(
    make: MakeService,
    listening: socket.socket,
    workers: int,
    *,
    report: Callable[[str], None],
    on_ready: Callable[[Loaded], None],
) -> None:
    """Answer requests with several processes until SIGTERM or SIGINT; SIGHUP reloads the runs.

    Raises the error of the runs or of the store if they cannot be loaded.
    """
    if sys.platform != "linux":
        raise BadInput("--workers above 1 needs Linux; start several services on other ports")
    with TemporaryDirectory(prefix="castpoi-") as folder:
        # read by the libraries of the processes when they are imported
        os.environ |= {METRICS_FOLDER: folder, "OMP_NUM_THREADS": "1"}
        plan = Plan(
            make=make,
            listening=socket.socket(fileno=listening.detach()),  # one that can be pickled
            workers=workers,
            supervisor=str(Path(folder) / "reload"),
        )
        asyncio.run(_Supervisor(plan, report).run(on_ready))


def _run_generation(plan: Plan, messages: Connection) -> None:
    """The main function of a generation; its imports are large, and the supervisor needs none."""
    from castpoi.serving.generation import run_generation

    run_generation(plan, messages)


class _Generation:
    """A process and its workers, as the supervisor sees them."""

    def __init__(self, plan: Plan) -> None:
        self.workers = plan.workers
        self.messages, theirs = Pipe(duplex=False)
        process = get_context("spawn").Process(target=_run_generation, args=(plan, theirs))
        process.start()
        theirs.close()  # so that the pipe ends with the last worker that accepts
        self.process = process

    def until_ready(self, report: Callable[[str], None]) -> Loaded:
        """Wait until all workers accept connections; raises the error of the load."""
        loaded, accepting = None, 0
        while loaded is None or accepting < self.workers:
            try:
                message = self.messages.recv()
            except EOFError:
                raise ServiceFailed(
                    "the workers ended before they were ready; the lines above have the reason, "
                    "if it was not a signal or a lack of memory"
                ) from None
            if isinstance(message, Exception):
                self.process.join()
                raise message
            if isinstance(message, str):
                report(message)
            elif isinstance(message, Loaded):
                loaded = message
            else:
                accepting += 1
        return loaded

    def until_drained(self) -> None:
        """Wait until no worker accepts connections."""
        with suppress(EOFError):
            while True:
                self.messages.recv()


class _Supervisor:
    """Starts a generation, replaces it at a reload or if it dies, and stops it."""

    def __init__(self, plan: Plan, report: Callable[[str], None]) -> None:
        self.plan = plan
        self.report = report
        self.current: _Generation | None = None
        self.running: list[_Generation] = []
        self.tasks: set[asyncio.Task[Any]] = set()
        self.drained: asyncio.Task[None] | None = None  # of the current generation
        self.stopping = asyncio.Event()
        self.reload = SharedReload(self._replace)

    async def run(self, on_ready: Callable[[Loaded], None]) -> None:
        """Serve until a signal to stop."""
        loop = asyncio.get_running_loop()
        for sign in _STOP_SIGNALS:
            loop.add_signal_handler(sign, self.stopping.set)
        loop.add_signal_handler(signal.SIGHUP, lambda: self._begin(self._try_reload()))
        server = await asyncio.start_unix_server(self._reload_for_worker, self.plan.supervisor)
        first = asyncio.create_task(self.reload())
        stop = asyncio.create_task(self.stopping.wait())
        try:
            await asyncio.wait((first, stop), return_when=asyncio.FIRST_COMPLETED)
            if first.done():
                on_ready(first.result())
                await stop
        finally:
            self.stopping.set()
            server.close()
            self.plan.listening.close()
            for generation in self.running:
                generation.process.terminate()
            for generation in [*self.running]:
                await asyncio.to_thread(generation.process.join)
            await asyncio.gather(first, stop, *self.tasks, return_exceptions=True)

    async def _replace(self) -> Loaded:
        """Start a generation, and stop the former one; returns when that accepts no request."""
        fresh = _Generation(self.plan)  # in this thread, with which the process would end
        self.running.append(fresh)
        try:
            loaded = await asyncio.to_thread(fresh.until_ready, self.report)
        except BaseException:
            self.running.remove(fresh)
            raise
        former, its_end, self.current = self.current, self.drained, fresh
        self.drained = self._begin(self._watch(fresh))
        if former is not None and its_end is not None:
            former.process.terminate()
            await its_end
        return loaded

    async def _watch(self, generation: _Generation) -> None:
        """Wait until a generation accepts no more; replace it if nobody has stopped it."""
        await asyncio.to_thread(generation.until_drained)
        if generation is self.current and not self.stopping.is_set():
            log_event("workers ended", code=generation.process.exitcode)
            self.current = None
            self._begin(self._start_again())
        self._begin(self._forget(generation))

    async def _forget(self, generation: _Generation) -> None:
        await asyncio.to_thread(generation.process.join)
        self.running.remove(generation)

    async def _start_again(self) -> None:
        while self.current is None and not self.stopping.is_set():
            await asyncio.sleep(PAUSE_SECONDS)
            await self._try_reload()

    async def _try_reload(self) -> None:
        try:
            await self.reload()
        except Exception as problem:
            log_failure("workers not replaced", problem)

    async def _reload_for_worker(
        self, _: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            outcome: ModelCard | Exception = (await self.reload()).card
        except Exception as problem:
            outcome = problem
        with suppress(ConnectionError):
            writer.write(pickle.dumps(outcome))
            await writer.drain()
        writer.close()

    def _begin(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task
