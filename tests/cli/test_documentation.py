"""Every command and option is on docs/command-line.md and has help; the shell completes them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
import typer.main
from typer.testing import CliRunner

import muntin_bench as bench
from muntin.cli.main import app

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
MUNTIN = str(Path(sys.executable).parent / "muntin")
ROOT = typer.main.get_command(app)
COMMANDS: dict[str, click.Command] = ROOT.commands  # type: ignore[attr-defined]


def options_of(command: click.Command) -> list[str]:
    """Every spelling of every option."""
    return [
        spelling
        for parameter in command.params
        if parameter.param_type_name == "option"
        for spelling in (*parameter.opts, *parameter.secondary_opts)
    ]


def section(name: str) -> str:
    found = re.search(rf"^## muntin {name}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None, f"docs/command-line.md has no section for {name}"
    return found[1]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_is_documented(name: str) -> None:
    command, text = COMMANDS[name], section(name)
    missing = [option for option in options_of(command) if not re.search(rf"`{option}\b", text)]
    assert missing == []
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    assert not arguments or f"`muntin {name} " in text
    shown = CliRunner().invoke(app, [name, "--help"], terminal_width=100)
    assert shown.exit_code == 0
    assert re.search(rf"Example:\s+muntin {name}", shown.stdout)


@pytest.mark.parametrize("name", [*COMMANDS, None])
def test_flags_have_no_type(name: str | None) -> None:
    """They take no value, so there is none to describe."""
    shown = CliRunner().invoke(app, [*([name] if name else []), "--help"], terminal_width=100)
    assert "--help" in shown.stdout
    assert "bool" not in shown.stdout


def test_help_lists_the_benchmarks() -> None:
    for _ in range(2):
        lines = CliRunner().invoke(app, ["bench", "--help"], terminal_width=80).stdout.splitlines()
        for name in bench.NAMES:
            assert sum(line.split()[:1] == [name] for line in lines) == 1
        assert max(map(len, bench.ABOUT.values())) + 14 < 80


def test_options_of_all_commands_are_documented() -> None:
    assert [option for option in options_of(ROOT) if f"`{option}`" not in PAGE] == []


def test_the_page_names_no_command_that_is_gone() -> None:
    assert set(re.findall(r"^## muntin (\w+)", PAGE, re.MULTILINE)) == set(COMMANDS)


def test_the_shell_completes_commands() -> None:
    asked = {"_MUNTIN_COMPLETE": "complete_bash", "COMP_WORDS": "muntin ex", "COMP_CWORD": "1"}
    done = subprocess.run(
        [MUNTIN], env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["explain"]


def test_an_unknown_option_ends_with_two() -> None:
    assert CliRunner().invoke(app, ["run", "--nope"]).exit_code == 2
