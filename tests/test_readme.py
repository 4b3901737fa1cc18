"""The README's example is run, and prints what the README says it prints."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)


def test_the_first_example_prints_what_stands_below_it() -> None:
    (language, code), (_, output) = BLOCK.findall(README.read_text())[:2]
    assert language == "python"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == output


def test_the_readme_names_the_two_commands() -> None:
    text = README.read_text()
    assert "make demo" in text
    assert "make test" in text


def test_ci_runs_what_contributors_run() -> None:
    """The two commands as they are named, so that a clone is never red where CI was green."""
    commands = (README.parent / ".ci" / "run").read_text().splitlines()
    made = [command for command in commands if command.startswith("make")]
    assert made == ["make lint", "make test"]
    for page in (README, README.parent / "CONTRIBUTING.md"):
        assert all(command in page.read_text() for command in made)
