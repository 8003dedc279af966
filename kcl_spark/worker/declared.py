"""What a pipeline file declares, for those who don't run it: read in a process of its own, which ends at once.

A supervisor or a `doctor` that imported the file itself would keep the user's code, and pyspark, for as long as it
lives; and what the file prints would mix with what they show.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from kcl_spark.errors import KclSparkError, UsageError


@dataclass(frozen=True)
class Declared:
    """The part of a pipeline that a worker's surroundings depend on.

    Attributes:
        name: the pipeline's name.
        stream: the stream it names, if any.
        keeps_marks: whether it is exactly once.
        sink: where its rows go.
    """

    name: str
    stream: str | None
    keeps_marks: bool
    sink: str


def declared(path: Path) -> Declared:
    """Load the file elsewhere and return what it declares. What it prints goes to stderr.

    Raises:
        UsageError: it is not there, does not import, or has no `pipeline`.
    """
    answers, answer = os.pipe2(os.O_CLOEXEC)
    command = [sys.executable, "-m", __name__, str(path), str(answer)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, pass_fds=(answer,)) as process:
        os.close(answer)
        with os.fdopen(answers) as lines:
            line = lines.readline()
    if not line:
        raise UsageError(f"loading {path} ended python with code {process.returncode}", "Correct the file")
    said = json.loads(line)
    if "cause" in said:
        raise UsageError(said["cause"], said["remedy"])
    return Declared(**said)


def _main(path: str, descriptor: str) -> None:
    from kcl_spark.worker.loading import load

    os.set_inheritable(int(descriptor), False)
    try:
        pipeline = load(Path(path))
        found = Declared(pipeline.name, pipeline.stream, pipeline.keeps_marks, pipeline.sink.place)
        said = asdict(found)
    except KclSparkError as error:
        said = {"cause": error.cause, "remedy": error.remedy}
    os.write(int(descriptor), json.dumps(said).encode() + b"\n")


if __name__ == "__main__":
    _main(*sys.argv[1:])
    sys.stderr.flush()
    os._exit(0)  # threads of the user's libraries have nothing to say any more
