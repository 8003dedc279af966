"""`python -m kcl_spark.compat app.py ...`: run a script written for amazon_kclpy, as `python app.py ...` would.

In this order, so that no line of the script, nor of what it imports, can reach the daemon's pipes:

1. the pipes become private, and printing goes to the log;
2. SIGINT and SIGTERM, which are meant for the daemon, do nothing;
3. `amazon_kclpy` becomes a name of kcl_spark.compat;
4. the script runs.
"""

from __future__ import annotations

import os
import runpy
import sys
import threading
from pathlib import Path
from typing import Final

from kcl_spark.compat.group_signals import pass_over_group_signals
from kcl_spark.compat.pipes import private_pipes
from kcl_spark.errors import ExitCode, KclSparkError, UsageError

USAGE: Final = "Write `python -m kcl_spark.compat app.py [arguments]`, or `-m module` in place of app.py"


def main(arguments: list[str]) -> None:
    """Run what the arguments name.

    Raises:
        SystemExit: the script's, or that of a foreseen error, which is one line on stderr.
    """
    try:
        _run(arguments)
    except KclSparkError as error:
        print(f"kcl-spark: {error}", file=sys.stderr)  # noqa: T201 - the interface of a command
        sys.exit(int(error.exit_code))
    except SystemExit as leaving:
        _leave_despite_threads(leaving.code)
        raise


def _run(arguments: list[str]) -> None:
    private_pipes()
    pass_over_group_signals()
    if arguments[:1] == ["-m"] and len(arguments) > 1:
        _answer_to_the_old_names()
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        script = _script(arguments)
        _answer_to_the_old_names()
        sys.argv = arguments
        if not sys.flags.safe_path:
            sys.path[0] = str(script.parent.resolve())
        runpy.run_path(str(script), run_name="__main__")


def _answer_to_the_old_names() -> None:
    from kcl_spark.compat.aliases import answer_to_the_old_names  # not before the pipes are private

    answer_to_the_old_names()


def _script(arguments: list[str]) -> Path:
    if not arguments or arguments[0].startswith("-"):
        raise UsageError("no script is named", USAGE)
    script = Path(arguments[0])
    if not script.exists():
        raise UsageError(
            f"{script} does not exist in {Path.cwd()}", "The daemon's own folder counts; name the whole path"
        )
    return script


def _leave_despite_threads(code: object) -> None:
    """End a process that failed, even if threads of the script's would keep it: the daemon waits for it without end."""
    others = [thread.name for thread in threading.enumerate() if not thread.daemon]
    others.remove(threading.current_thread().name)
    if code in (None, 0) or not others:
        return
    print(f"kcl-spark: leaving behind the threads {', '.join(others)}", file=sys.stderr)  # noqa: T201
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(ExitCode.FAILURE))


if __name__ == "__main__":
    main(sys.argv[1:])
