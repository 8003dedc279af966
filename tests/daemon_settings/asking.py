"""The daemon's own configuration class, asked about many texts in one JVM."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kcl_spark.daemon.command import LOGBACK
from tests.daemon_settings.jars import installed


def ask_daemon(questions: Sequence[tuple[str, str]]) -> list[str]:
    """Answer (text, property) with `ends`, or `starts` and the property's value."""
    source = Path(__file__).with_name("Daemon.java")
    run = ["java", f"-Dlogback.configurationFile={LOGBACK}", "-cp", f"{installed().folder}/*", str(source)]
    lines = "".join(f"{text.encode().hex()} {name}\n" for text, name in questions)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(run, input=lines, env=environment, capture_output=True, text=True, check=True, timeout=120)
    answers = [line.strip() for line in done.stdout.splitlines()]
    assert len(answers) == len(questions), done.stderr[-2000:]
    return answers
