"""The README's example is run, and prints what the README says it prints."""

from __future__ import annotations

from code_blocks import ROOT, blocks

README = ROOT / "README.md"


def test_the_first_example_prints_what_stands_below_it() -> None:
    first = blocks([README])[0]
    assert (first.language, first.run({})) == ("python", first.output)


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
