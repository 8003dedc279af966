"""The command `kcl-spark`. A child is sent on its way before anything heavy is imported: one runs per shard."""

import os
import sys


def main() -> None:
    """Become the child stub, or run the command line."""
    if sys.argv[1:2] == ["child"] and "--help" not in sys.argv:
        stub = os.path.join(os.path.dirname(__file__), "worker", "child.py")  # noqa: PTH118, PTH120 - see above
        os.execv(sys.executable, [sys.executable, "-S", "-E", stub, *sys.argv[2:]])  # noqa: S606 - no shell, by design
    from kcl_spark.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
