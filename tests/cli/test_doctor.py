"""``muntin doctor --warm``: what it makes ahead, and what it says of it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from muntin import spark

Muntin = Callable[..., tuple[int, str, str]]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was made ahead, in order; a healthy machine, whatever this one is."""
    found: list[str] = []
    monkeypatch.setattr("muntin.spark.doctor", spark.Findings)
    monkeypatch.setattr("muntin.warm.warm", lambda processes: iter([("a kind", 2), ("more", 1)]))
    monkeypatch.setattr("muntin.warm.record_classes", lambda: found.append("classes") or True)
    return found


def findings(muntin: Muntin, code: int = 0) -> dict[str, tuple[str, str]]:
    ended, shown, _ = muntin("doctor", "--warm", "--format", "json")
    assert ended == code
    return {each["check"]: (each["status"], each["found"]) for each in json.loads(shown)}


def test_kernels_are_compiled_and_classes_recorded(muntin: Muntin, made: list[str]) -> None:
    assert findings(muntin) == {
        "compiled ahead": ("ok", "3 kernels"),
        "classes recorded": ("ok", "for later sessions"),
    }
    assert made == ["classes"]


def test_classes_that_are_there_are_not_recorded_again(
    muntin: Muntin, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muntin.warm.record_classes", lambda: False)
    assert findings(muntin)["classes recorded"] == ("ok", "nothing to record")


def test_a_session_that_fails_is_no_reason_to_fail(
    muntin: Muntin, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> bool:
        raise OSError("the disk is full")

    monkeypatch.setattr("muntin.warm.record_classes", fail)
    assert findings(muntin)["classes recorded"] == ("warning", "OSError: the disk is full")


def test_nothing_is_recorded_where_spark_cannot_run(
    muntin: Muntin, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ill = spark.Finding("Java", "problem", "there is none", "install one")
    monkeypatch.setattr("muntin.spark.doctor", lambda: spark.Findings([ill]))
    assert "classes recorded" not in findings(muntin, code=1)
    assert made == []
