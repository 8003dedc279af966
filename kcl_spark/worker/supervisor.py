"""The worker's first process: it starts engine and daemon, restarts what dies, and ends both in order. Fit to be PID 1.

    starting     the engine alone, until it says that it is ready: then `initialize` is answered in milliseconds
    running      both
    draining     SIGTERM or SIGINT came: the daemon's graceful path, cut short as soon as the engine has no shard left
    (and back)   something died: see the table

    what died                       what follows
    -----------------------------   ------------------------------------------------------------------------------
    the daemon                      started again with the same worker id, so that it has its leases back at once
    the engine                      the daemon is killed at once: a child's death costs it its whole grace period (31 s
                                    seen) and everything it has uncommitted is delivered again anyway; both start anew,
                                    side by side, since it is Spark that takes longest
    the engine, for good reason     (an operator's decision is needed) the worker ends with the engine's exit code
    either, again and again         the worker ends, and whoever runs it decides

During the daemon's shutdown KCL 3.1.3 was seen to take its own leases again and to start new children, for 20 seconds
more. The engine says when the last shard has been given up; nothing after that is wanted, so the daemon is ended there.
"""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Final

from kcl_spark.errors import EngineGone, ExitCode
from kcl_spark.worker import handover
from kcl_spark.worker.child import FOLDER

FINAL: Final = frozenset(
    {
        ExitCode.USAGE,
        ExitCode.DATA_LOSS,
        ExitCode.TRANSFORM_BROKEN,
        ExitCode.SINK,
    }
)
"""Exit codes of the engine after which a restart would only fail again."""

QUICK: Final = 30.0
"""A process that lived shorter than this (seconds) did not get as far as work: its death counts as one in a row."""

MOST_QUICK_DEATHS: Final = 5
"""Deaths in a row before the worker gives up; their waits add up to 7 s, and the daemon itself retries for longer."""

FIRST_WAIT: Final = 1.0

ENGINE_SECONDS: Final = 5.0
"""How long the engine may take to end once the daemon is gone; it writes nothing any more then."""


class Phase(Enum):
    """What the worker is doing."""

    STARTING = auto()
    RUNNING = auto()
    DRAINING = auto()
    OVER = auto()


@dataclass
class Process:
    """A process that is started, may die, and is started again."""

    name: str
    command: Sequence[str]
    running: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    quick_deaths: int = 0
    starts_at: float | None = None
    killed: bool = False

    def died(self, now: float) -> None:
        """Note a death, and when the next start may be; one that we caused ourselves does not count."""
        self.running = None
        if not self.killed:
            self.quick_deaths = self.quick_deaths + 1 if now - self.started_at < QUICK else 1
        # The first death is made good at once; only what dies again has to wait.
        self.starts_at = now + (0.0 if self.quick_deaths <= 1 else FIRST_WAIT * 2 ** (self.quick_deaths - 2))


@dataclass
class Supervisor:
    """Runs one worker.

    Args:
        engine: the engine's command line; `--notify-fd N` is added.
        daemon: the daemon's command line.
        folder: the worker's private folder.
        grace: seconds that the daemon may take to shut down (its shutdownGraceMillis).
        environment: for both.
        clock: monotonic seconds.
        log: told one line about what happens.
        warm: have the first engine run some jobs before the daemon is started.
    """

    engine: Process
    daemon: Process
    folder: Path
    grace: float
    environment: Mapping[str, str]
    clock: Callable[[], float]
    log: Callable[[str], None]
    warm: bool = True
    phase: Phase = Phase.STARTING
    exit_code: int = ExitCode.OK
    _deadline: float | None = None
    _notices: int | None = None
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def run(self) -> int:
        """Run until told to stop or until it makes no sense any more; returns the exit code. Main thread only."""
        bell, ring = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        former = signal.set_wakeup_fd(ring)
        handled = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
        handlers = {number: signal.signal(number, lambda *_: None) for number in handled}
        self._selector.register(bell, selectors.EVENT_READ, lambda: self._take_signals(bell))
        try:
            self._start_engine(warm=self.warm)
            while self.phase is not Phase.OVER:
                for key, _ in self._selector.select(self._timeout()):
                    key.data()
                self._keep_time()
        finally:
            self._kill_all()
            signal.set_wakeup_fd(former)
            for number, handler in handlers.items():
                signal.signal(number, handler)
            os.close(bell)
            os.close(ring)
        return int(self.exit_code)

    # -------------------------------------------------------------------------------------------- starting

    def _start_engine(self, *, warm: bool) -> None:
        notices, notify = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        command = [*self.engine.command, "--notify-fd", str(notify), "--warm" if warm else "--no-warm"]
        self._start(self.engine, command, (notify,))
        os.close(notify)
        self._notices = notices
        self._selector.register(notices, selectors.EVENT_READ, self._take_notices)

    def _start_daemon(self) -> None:
        self._start(self.daemon, self.daemon.command, ())
        if self.phase is Phase.STARTING:
            self.phase = Phase.RUNNING

    def _start(self, process: Process, command: Sequence[str], descriptors: tuple[int, ...]) -> None:
        process.started_at, process.starts_at, process.killed = self.clock(), None, False
        process.running = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=2,
            pass_fds=descriptors,
            env={**self.environment, FOLDER: str(self.folder)},
            # A group of its own: Ctrl-C in a terminal is for us, and what it means is said by us.
            process_group=0,
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - there are no threads in this process
        )
        self.log(f"{process.name} started, pid {process.running.pid}")

    # -------------------------------------------------------------------------------------------- events

    def _take_signals(self, bell: int) -> None:
        for number in os.read(bell, 256):
            if number in (signal.SIGTERM, signal.SIGINT):
                self._asked_to_stop(signal.Signals(number))
        self._reap()

    def _take_notices(self) -> None:
        """The engine's own words.

        `ready` once; `stopped` when a shard can't go on; `idle` when a draining engine has given up its last shard.
        """
        if self._notices is None:  # forgotten in this very round: SIGCHLD was looked at first
            return
        words = os.read(self._notices, 256).split()
        if not words:
            self._forget_notices()
        if b"ready" in words and self.phase is Phase.STARTING:
            self._start_daemon()
        if b"stopped" in words:
            self.exit_code = ExitCode.SHARD_STOPPED
        if b"idle" in words and self.phase is Phase.DRAINING:
            self.log("every shard has been given up")
            self._kill(self.daemon)

    def _asked_to_stop(self, number: signal.Signals) -> None:
        if self.phase is Phase.DRAINING:
            self.log(f"{number.name} again: ending at once")
            self.phase = Phase.OVER
            return
        self.log(f"{number.name}: draining, for {self.grace:g} s at most")
        was_running = self.daemon.running is not None
        self.phase = Phase.DRAINING
        self._deadline = self.clock() + self.grace
        if not was_running:
            self._stop_engine()
            return
        with suppress(EngineGone):
            handover.ask(self.folder, "drain")
        self._signal(self.daemon, signal.SIGTERM)

    def _reap(self) -> None:
        """Take in every dead child; as PID 1 those too that lost their own parent (a dead daemon's stubs)."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for process, died in ((self.engine, self._engine_died), (self.daemon, self._daemon_died)):
                if process.running is not None and process.running.pid == pid:
                    code = os.waitstatus_to_exitcode(status)
                    process.running.returncode = code
                    process.died(self.clock())
                    died(code)

    def _engine_died(self, code: int) -> None:
        self._forget_notices()
        if self.phase is Phase.DRAINING:
            if code != 0:
                self.log(f"engine ended with {_told(code)} while draining; what it held is delivered again")
                self.exit_code = self.exit_code or (code if code > 0 else ExitCode.ENGINE_GONE)
            self._over_when_both_are_gone()
            return
        self.log(f"engine ended with {_told(code)}; ending the daemon")
        self._kill(self.daemon)
        if code in FINAL or (self.phase is Phase.STARTING and code > 0):
            self._end(code)
        elif self.engine.quick_deaths >= MOST_QUICK_DEATHS:
            self.log(f"the engine died {MOST_QUICK_DEATHS} times in a row")
            self._end(code if code > 0 else ExitCode.ENGINE_GONE)

    def _daemon_died(self, code: int) -> None:
        if self.phase is Phase.DRAINING:
            self._stop_engine()
            return
        if self.daemon.killed:  # together with the engine, and started together with it
            self.daemon.starts_at = max(self.clock(), self.engine.starts_at or 0.0)
            return
        self.log(f"daemon ended with {_told(code)}")
        if self.daemon.quick_deaths >= MOST_QUICK_DEATHS:
            self.log(f"the daemon died {MOST_QUICK_DEATHS} times in a row; its own messages above say why")
            self._end(ExitCode.DAEMON_FAILED)

    def _keep_time(self) -> None:
        now = self.clock()
        if self._deadline is not None and now >= self._deadline:
            self._overdue()
        if self.phase in (Phase.DRAINING, Phase.OVER):
            return
        if self.engine.starts_at is not None and now >= self.engine.starts_at:
            self._start_engine(warm=False)
        if self.daemon.starts_at is not None and now >= self.daemon.starts_at:
            self._start_daemon()

    def _timeout(self) -> float | None:
        starts = (self.engine.starts_at, self.daemon.starts_at) if self.phase is not Phase.DRAINING else ()
        times = (self._deadline, *starts)
        known = [time for time in times if time is not None]
        return max(0.0, min(known) - self.clock()) if known else None

    # -------------------------------------------------------------------------------------------- ending

    def _stop_engine(self) -> None:
        """The daemon is gone: the engine has nothing more to do, and little time to say goodbye."""
        self._deadline = self.clock() + ENGINE_SECONDS
        self._signal(self.engine, signal.SIGTERM)
        self._over_when_both_are_gone()

    def _overdue(self) -> None:
        if self.daemon.running is not None:
            self.log("the daemon did not shut down within its grace period: killed")
            self._deadline = None
            self._kill(self.daemon)
        else:
            self.phase = Phase.OVER

    def _over_when_both_are_gone(self) -> None:
        if self.engine.running is None and self.daemon.running is None:
            self.phase = Phase.OVER

    def _end(self, code: int) -> None:
        self.exit_code = code
        self.phase = Phase.OVER

    def _kill(self, process: Process) -> None:
        process.killed = True
        self._signal(process, signal.SIGKILL)

    def _signal(self, process: Process, number: signal.Signals) -> None:
        if process.running is not None:
            with suppress(ProcessLookupError):
                os.kill(process.running.pid, number)

    def _kill_all(self) -> None:
        """Leave nothing behind: engine, daemon, and the groups they lead."""
        for process in (self.daemon, self.engine):
            if process.running is not None:
                with suppress(ProcessLookupError):
                    os.killpg(process.running.pid, signal.SIGKILL)
                process.running.wait()
        self._forget_notices()

    def _forget_notices(self) -> None:
        if self._notices is not None:
            self._selector.unregister(self._notices)
            os.close(self._notices)
            self._notices = None


def _told(code: int) -> str:
    if code < 0:
        return signal.Signals(-code).name
    with suppress(ValueError):
        return f"exit code {code} ({ExitCode(code).name.lower().replace('_', ' ')})"
    return f"exit code {code}"


_PR_SET_PDEATHSIG: Final = 1


def _die_with_parent() -> None:
    """Runs in the new process: a worker without its supervisor would never be stopped by anybody."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
