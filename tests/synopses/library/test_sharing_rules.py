"""Sharing rules: the worked questions of chapter 8, and what covers may not do."""

from __future__ import annotations

import pytest

from muntin.errors import DataError
from muntin.synopses.library.card import CARDS
from muntin.synopses.library.sharing_rules import (
    Atom,
    Kept,
    Question,
    Sharing,
    Task,
    computed_together,
    crossing,
    generalised_join,
    is_disjoint,
    sharing,
)

LOW, HIGH, MIDDLE = Atom("v", "<", 10), Atom("v", ">", 20), Atom("v", "=", 15)
WIDE = Atom("v", "<", 18)


def kept(name, aggregate, *atoms, step=1, parts=60, offset=0, kind="running"):
    return Kept(name, aggregate, step, parts, frozenset(atoms), kind, offset)


def asked(aggregate, *atoms, length=30):
    return Question(aggregate, length, frozenset(atoms))


@pytest.mark.parametrize(
    ("question", "synopses", "expected"),
    [
        pytest.param(
            asked("sum", LOW), [kept("a", "sum", LOW)], Sharing("SS1", ("a",)), id="the same"
        ),
        pytest.param(
            asked("avg"),
            [kept("s", "sum"), kept("c", "count")],
            Sharing("SS2", ("s", "c")),
            id="an average from a sum and a count",
        ),
        pytest.param(
            asked("sum", LOW, HIGH),
            [kept("a", "sum", LOW), kept("b", "sum", HIGH)],
            Sharing("SS4", ("a", "b")),
            id="a disjoint cover is added up",
        ),
        pytest.param(
            asked("max", LOW, WIDE),
            [kept("a", "max", LOW), kept("b", "max", WIDE)],
            Sharing("SS4", ("a", "b")),
            id="a cover of a maximum may overlap",
        ),
        pytest.param(
            asked("sum", LOW),
            [kept("all", "sum", LOW, HIGH), kept("b", "sum", HIGH)],
            Sharing("SS4", ("all",), ("b",)),
            id="a supercover less what is too much",
        ),
    ],
)
def test_what_can_be_shared(question, synopses, expected):
    assert sharing(question, synopses) == expected


@pytest.mark.parametrize(
    ("question", "synopses"),
    [
        pytest.param(
            asked("sum", LOW, WIDE),
            [kept("a", "sum", LOW), kept("b", "sum", WIDE)],
            id="rows of two predicates would count twice",
        ),
        pytest.param(
            asked("max", LOW),
            [kept("all", "max", LOW, HIGH), kept("b", "max", HIGH)],
            id="a maximum cannot be subtracted",
        ),
        pytest.param(
            asked("sum", LOW, HIGH),
            [kept("a", "sum", LOW), kept("b", "sum", HIGH, step=2, offset=1)],
            id="parts that close at other times",
        ),
        pytest.param(asked("sum", length=90), [kept("a", "sum")], id="too long"),
        pytest.param(asked("sum", length=31), [kept("a", "sum", step=2)], id="half a part"),
        pytest.param(
            asked("avg"), [kept("s", "sum", step=2), kept("c", "count")], id="unequal parts"
        ),
    ],
)
def test_what_cannot_be_shared(question, synopses):
    assert sharing(question, synopses) is None


def test_atoms_that_meet():
    assert is_disjoint([LOW, MIDDLE, HIGH])
    assert not is_disjoint([LOW, WIDE])
    assert not is_disjoint([Atom("v", "<=", 1), Atom("v", ">=", 1)])
    assert is_disjoint([Atom("v", "<", 1), Atom("v", "=", 1)])
    assert not is_disjoint([Atom("v", "<", 1), Atom("w", ">", 1)])


def task(aggregate, *names, length=10, kind="running", period=1, joins=False):
    return Task(Question(aggregate, length), frozenset(names), kind, period, joins)


@pytest.mark.parametrize(
    ("first", "second", "rule"),
    [
        (task("sum", "s"), task("count", "s"), "CS1"),
        (task("max", "s", kind="interval"), task("max", "s", kind="interval", length=9), None),
        (
            task("max", "s", kind="basic_interval"),
            task("max", "s", kind="basic_interval", length=9),
            "CS2",
        ),
        (task("avg", "s", "c"), task("sum", "s"), "CS3"),
        (task("avg", "s", "c"), task("sum", "s", length=9), None),
        (task("count", "j", joins=True), task("sum", "j", joins=True), "CS4"),
        (
            task("count", "j", joins=True, kind="basic_interval"),
            task("count", "j", joins=True, kind="basic_interval", length=9),
            "CS5",
        ),
        (task("max", "a"), task("max", "a", "b"), "CS6"),
        (
            task("max", "a", kind="basic_interval"),
            task("max", "a", "b", kind="basic_interval", length=9),
            "CS7",
        ),
        (task("max", "a"), task("max", "a", period=2), "CS8"),
        (task("max", "a"), task("max", "b"), None),
    ],
)
def test_what_is_computed_together(first, second, rule):
    assert computed_together(first, second) == rule


def test_joins_of_unequal_windows():
    assert generalised_join(8, 0, 5, 5)
    assert not generalised_join(8, 0, 7, 8)
    assert generalised_join(8, 3, 5, 8)


def test_where_a_basic_interval_synopsis_begins_to_win():
    assert (crossing(64), crossing(64, by_means=True)) == (11, 14)
    with pytest.raises(DataError, match="2 parts or more"):
        crossing(1)


def test_every_synopsis_has_a_card_of_its_own():
    assert len({card.name for card in CARDS}) == len(CARDS) == 6
