"""Draw docs/protocol.md's diagram from the table that the code runs on: `python docs/make_state_diagram.py`."""

from pathlib import Path

from kcl_spark.protocol.states import TRANSITIONS, Role, State

BEGIN, END = "<!-- diagram: begin -->\n", "<!-- diagram: end -->\n"
FILE = Path(__file__).with_name("protocol.md")


def diagram() -> str:
    """The table as a Mermaid state diagram; an arrow says who speaks and what."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {State.EXPECT_INITIALIZE.name}"]
    for state, (sender, messages) in TRANSITIONS.items():
        said = "daemon" if sender is Role.DAEMON else "child"
        lines += [f"    {state.name} --> {after.name}: {said} {kind}" for kind, after in messages.items()]
    lines += [f"    {State.FINISHED.name} --> [*]: daemon closes the pipe", "```", ""]
    return "\n".join(lines)


def with_diagram(text: str) -> str:
    """The page with the diagram of today's table in its place."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + diagram() + END + rest.split(END)[1]


if __name__ == "__main__":
    FILE.write_text(with_diagram(FILE.read_text()))
