"""A child that writes down the conversation: it stands between the daemon and the real child and passes every byte on.

`python recorder.py FOLDER CHILD...` makes one file for each shard's life in FOLDER, a line for each message: `>` from
the daemon, `<` from the child, then the message as it was.
"""

import os
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import BinaryIO


def main(folder: str, *child: str) -> int:
    process = subprocess.Popen(child, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    with Path(folder, f"{os.getpid()}.txt").open("wb", buffering=0) as transcript:
        down = Thread(target=relay, args=(sys.stdin.buffer, process.stdin, transcript, b">"))
        up = Thread(target=relay, args=(process.stdout, sys.stdout.buffer, transcript, b"<"))
        for thread in (down, up):
            thread.start()
        up.join()
        code = process.wait()
    os._exit(code)  # the daemon may hold its end open for ever


def relay(source: BinaryIO, target: BinaryIO, transcript: BinaryIO, sign: bytes) -> None:
    for line in source:
        if line.strip():
            transcript.write(sign + b" " + line.strip() + b"\n")
        target.write(line)
        target.flush()
    target.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
