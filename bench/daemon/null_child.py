"""Child (a): reads each line and answers it; what is left is the daemon's own speed."""

import sys

STATUS = b'\n{"action":"status","responseFor":"%s"}\n'
END = b'\n{"action":"checkpoint","sequenceNumber":null,"subSequenceNumber":null}\n'


def main() -> None:
    while line := sys.stdin.buffer.readline():
        action = line[11 : line.index(b'"', 11)]
        if action == b"shardEnded":
            sys.stdout.buffer.write(END)
            sys.stdout.buffer.flush()
            sys.stdin.buffer.readline()
        sys.stdout.buffer.write(STATUS % action)
        sys.stdout.buffer.flush()


main()
