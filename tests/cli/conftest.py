"""What tests of the command share: its entry point, called in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from muntin.cli.main import main

Muntin = Callable[..., tuple[int, str, str]]


@pytest.fixture
def muntin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Muntin:
    """Calls the entry point: gives its exit code, and what it wrote to both outputs."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["muntin", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return (int(end.value.code or 0), *capsys.readouterr())

    return call
