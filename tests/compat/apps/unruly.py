#!/usr/bin/env python
# mypy: ignore-errors
"""A processor that does to its process what real ones do: prints, subprocesses, forks, threads. ACT says which."""

import io
import multiprocessing
import os
import signal
import subprocess
import sys
import threading

from amazon_kclpy import kcl
from amazon_kclpy.v3 import processor
from obedient import Version3

STATUS = '{"action": "status", "responseFor": "processRecords"}'
SLEEPER = [sys.executable, "-S", "-c", "import signal; signal.pause()"]


def print_everywhere():
    """Say a line that the daemon would take for a status, in every way there is."""
    print(STATUS)
    print("caf\u00e9 \udcff")
    sys.stdout.write(STATUS + "\n")
    sys.__stdout__.write(STATUS + "\n")
    os.write(1, STATUS.encode() + b"\n")
    subprocess.run(["echo", STATUS], check=True)


class RecordProcessor(Version3, processor.RecordProcessorBase):
    def process_records(self, process_records_input):
        super().process_records(process_records_input)
        act = globals().get(os.environ.get("ACT", ""))
        if act:
            act(self, process_records_input)


def noise(self, given):
    print_everywhere()


def print_and_vanish(self, given):
    print("last words")
    os._exit(3)


def read_stdin(self, given):
    self.note("stdin", sys.stdin.read(), subprocess.run(["cat"], capture_output=True, check=True).stdout.decode())


def leave_a_subprocess(self, given):
    self.note("pid", subprocess.Popen(SLEEPER, stdin=subprocess.PIPE, close_fds=False).pid)


def leave_a_fork(self, given):
    pid = os.fork()
    if pid == 0:
        signal.pause()
    self.note("pid", pid)


def checkpoint_in_a_fork(self, given):
    worker = multiprocessing.get_context("fork").Process(target=self.try_to, args=[given.checkpointer.checkpoint])
    worker.start()
    worker.join()


def terminate_a_subprocess(self, given):
    child = subprocess.Popen(SLEEPER, stdin=subprocess.PIPE)
    child.terminate()
    self.note("ended", child.wait(10))


def terminate_a_fork(self, given):
    worker = multiprocessing.get_context("fork").Process(target=signal.pause)
    worker.start()
    worker.terminate()
    worker.join(10)
    self.note("ended", worker.exitcode)


def signal_self(self, given):
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGTERM)
    self.note("alive")


def leave_a_thread_and_raise(self, given):
    threading.Thread(target=threading.Event().wait, name="flusher").start()
    raise ValueError("with a thread alive")


def leave_a_thread(self, given):
    threading.Thread(target=threading.Event().wait, name="flusher").start()


def checkpoint_and_ignore_all(self, given):
    try:
        given.checkpointer.checkpoint()
    except Exception as error:
        self.note("error", str(error))
    self.note("went on")


def swallow_even_the_stop(self, given):
    try:
        given.checkpointer.checkpoint()
    except BaseException:
        self.note("swallowed")


def exit_by_itself(self, given):
    sys.exit(9)


if os.environ.get("ACT") == "noise":
    print_everywhere()

if __name__ == "__main__":
    wrapped = io.TextIOWrapper(sys.stdin.buffer, "utf-8"), io.TextIOWrapper(sys.stdout.buffer, "utf-8")
    files = {"explicit": (sys.stdin, sys.stdout, sys.stderr), "wrapped": wrapped}
    kcl.KCLProcess(RecordProcessor(), *files.get(os.environ.get("FILES"), ())).run()
    RecordProcessor().note("after run")
