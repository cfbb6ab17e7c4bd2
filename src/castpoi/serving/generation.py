"""The process that receives the loaded runs and forks the workers, its loader, and the workers."""

import asyncio
import ctypes
import gc
import os
import pickle
import signal
import time
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import BinaryIO, Final, NoReturn

import torch
from prometheus_client import multiprocess

from castpoi.core.errors import ModelNotReady
from castpoi.serving.handover import Recommenders, receive_recommenders, send_recommenders
from castpoi.serving.logs import log_event, log_failure, logged_to_stderr
from castpoi.serving.schema import ModelCard
from castpoi.serving.server import ListeningSocket, serve_until_stopped
from castpoi.serving.workers import ACCEPTS, PAUSE_SECONDS, Loaded, Plan

_PARENT_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG of prctl(2)


async def _ask_supervisor(address: str) -> ModelCard:
    """Reload all workers; returns the new model once no worker answers with the former one."""
    reader, writer = await asyncio.open_unix_connection(address)
    answer = await reader.read()
    writer.close()
    if not answer:
        raise ModelNotReady("the service is stopping; try again")
    outcome = pickle.loads(answer)
    if isinstance(outcome, Exception):
        raise outcome
    assert isinstance(outcome, ModelCard)
    return outcome


def run_generation(plan: Plan, messages: Connection) -> None:
    """Load the runs and keep the workers alive until SIGTERM; the main function of a process."""
    _end_with(os.getppid())
    for sign in (signal.SIGINT, signal.SIGHUP):  # of a terminal, which the supervisor handles
        signal.signal(sign, signal.SIG_IGN)
    with logged_to_stderr():
        loaded = _load_elsewhere(plan, messages)
        if loaded is not None:
            _Workers(plan, messages, loaded).run()


def _load_elsewhere(plan: Plan, messages: Connection) -> Recommenders | None:
    """The recommenders of all runs, loaded by another process; None if that failed."""
    reading, writing = os.pipe()
    parent = os.getpid()
    if not os.fork():
        _end_with(parent)
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            _load(plan, messages, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        loaded = receive_recommenders(pipe)
    os.wait()
    return loaded


def _load(plan: Plan, messages: Connection, pipe: BinaryIO) -> None:
    """Load and check the runs, fill a new store, and send the runs, or the error."""
    try:
        service = plan.make(report=messages.send)
        service.load_and_log(service.city)
        users, visits = service.store.counts()
        messages.send(Loaded(card=service.card(), users=users, visits=visits))
        send_recommenders(service.recommenders, pipe)
    except Exception as problem:
        messages.send(problem)


class _Workers:
    """The workers of a generation, as its process sees them."""

    def __init__(self, plan: Plan, messages: Connection, loaded: Recommenders) -> None:
        self.plan, self.messages, self.loaded = plan, messages, loaded
        self.running: set[int] = set()
        self.is_stopping = False

    def run(self) -> None:
        """Fork the workers, and replace each that dies, until SIGTERM."""
        gc.collect()
        gc.freeze()  # or the next collection would write to, and so copy, all pages
        signal.signal(signal.SIGTERM, self._stop)
        while True:
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
            while not self.is_stopping and len(self.running) < self.plan.workers:
                self.running.add(os.fork() or self._work())
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
            if not self.running:
                return
            process, status = os.wait()
            self.running.discard(process)
            multiprocess.mark_process_dead(process)
            if not self.is_stopping:
                log_event("worker ended", code=os.waitstatus_to_exitcode(status))
                time.sleep(PAUSE_SECONDS)

    def _stop(self, *_: object) -> None:
        self.is_stopping = True
        self.messages.close()
        for process in self.running:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)

    def _work(self) -> NoReturn:
        """Serve until stopped; the whole life of a worker."""
        code = 1
        try:
            _end_with(os.getppid())
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # until the server has its own handler
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
            torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // self.plan.workers))
            listening = ListeningSocket(fileno=self.plan.listening.detach())
            listening.takes_turns = True
            service = self.plan.make(
                report=lambda _: None,
                loaded=self.loaded,
                reload=partial(_ask_supervisor, self.plan.supervisor),
            )
            serve_until_stopped(
                service,
                listening,
                on_ready=partial(self.messages.send, ACCEPTS),
                on_drained=self.messages.close,
            )
            code = 0
        except Exception as problem:
            log_failure("worker failed", problem)
        finally:
            os._exit(code)


def _end_with(parent: int) -> None:
    """End this process by SIGTERM when its parent ends, however that happens."""
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before
        os._exit(1)
