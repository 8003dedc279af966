"""The parser of properties texts: line numbers and traps by example, everything else against Java itself."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kcl_spark.daemon.properties import Entry, effective, parse, read, write
from kcl_spark.errors import UsageError

CASES = [
    ("a=b", [Entry(1, "a", "b")]),
    ("a = b ", [Entry(1, "a", "b ")]),
    ("a : b\t", [Entry(1, "a", "b\t")]),
    ("a b c", [Entry(1, "a", "b c")]),
    ("a", [Entry(1, "a", "")]),
    ("a==b", [Entry(1, "a", "=b")]),
    ("a = = b", [Entry(1, "a", "= b")]),
    ("# c\n! d\n\n  a=1 # e", [Entry(4, "a", "1 # e")]),
    ("#:a=1", []),
    ("a\\ b\\=c\\:d=e", [Entry(1, "a b=c:d", "e")]),
    ("a=b\\\n   c\n\nd=e", [Entry(1, "a", "bc"), Entry(4, "d", "e")]),
    ("a \\\n = b", [Entry(1, "a", "b")]),
    ("a=b\\\\\nc=d", [Entry(1, "a", "b\\"), Entry(2, "c", "d")]),
    ("a=1\r\nb=2\rc=3", [Entry(1, "a", "1"), Entry(2, "b", "2"), Entry(3, "c", "3")]),
    ("a=1\nb=2\na=3", [Entry(1, "a", "1"), Entry(2, "b", "2"), Entry(3, "a", "3")]),
    ("a=\\u00e9\\ud83d\\ude00\\t\\q", [Entry(1, "a", "é😀\tq")]),
    ("\\\n#c\na=1", [Entry(3, "a", "1")]),
    ("a=\\\n#c", [Entry(1, "a", "#c")]),
]


@pytest.mark.parametrize(("text", "entries"), CASES, ids=[repr(text) for text, _ in CASES])
def test_reading(text: str, entries: list[Entry]) -> None:
    assert parse(text) == entries


def test_the_last_of_several_entries_counts() -> None:
    assert effective(parse("a=1\nb=2\na=3")) == {"a": Entry(3, "a", "3"), "b": Entry(2, "b", "2")}


def test_a_malformed_escape_names_its_line() -> None:
    with pytest.raises(UsageError, match="line 2 has"):
        parse("a=1\nb=\\u12x4")


def test_a_file_is_read_as_the_daemon_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "kcl.properties"
    file.write_bytes("a=é\r\nb=1".encode())
    assert read(file) == "a=\u00c3\u00a9\r\nb=1"


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read"):
        read(tmp_path / "none")


LETTERS = st.sampled_from(
    [*list("ab #!=:\\\\\\\t\x0c\n\r u0041dD8né"), "\\u0041", "\\ud83d", "\\ude00", "\\\n", "\\\r\n"]
)
TEXTS = st.lists(LETTERS, max_size=24).map("".join)
ANYTHING = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(ANYTHING, st.text())
def test_what_is_written_reads_back(key: str, value: str) -> None:
    assert parse(write(key, value)) == [Entry(1, key, value)]


@given(ANYTHING, st.text())
def test_what_is_written_is_one_line_of_ascii(key: str, value: str) -> None:
    line = write(key, value)
    assert line.isascii()
    assert not set("\r\n") & set(line)


@pytest.fixture(scope="module")
def java() -> Iterator[subprocess.Popen[str]]:
    source = Path(__file__).with_name("Oracle.java")
    command = ["java", "-XX:TieredStopAtLevel=1", str(source)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        assert process.stdin
        process.stdin.close()


def units(text: str) -> str:
    return text.encode("utf-16-be", "surrogatepass").hex()


def ours(text: str) -> str:
    try:
        entries = effective(parse(text))
    except UsageError:
        return "malformed"
    return " ".join(["ok", *sorted(f"{units(key)}={units(entry.value)}" for key, entry in entries.items())])


def javas(process: "subprocess.Popen[str]", text: str) -> str:
    assert process.stdin
    assert process.stdout
    process.stdin.write(units(text) + "\n")
    process.stdin.flush()
    answer = process.stdout.readline().split()
    return " ".join([answer[0], *sorted(answer[1:])])


@pytest.mark.jvm
@settings(max_examples=2000, deadline=None)  # the first answer waits for the JVM
@given(text=TEXTS)
@example("\\")
@example("\\\n")
@example("\\\r\n")
@example("\\\n ")
@example("a\\\r\n")
@example("a=1\\")
@example("a=1\\\n\n b=2")
def test_java_reads_the_same(java: "subprocess.Popen[str]", text: str) -> None:
    assert ours(text) == javas(java, text)
