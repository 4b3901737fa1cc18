"""Garbage collection put off: what is made stays collectable, and others' choices stay."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from muntin._garbage import uncollected


class Cycle:
    """An object that only the garbage collector can remove."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def enabled() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.enable()
    yield
    if not was_enabled:
        gc.disable()


def test_what_is_made_meanwhile_is_collected_later(enabled: None) -> None:
    with uncollected():
        gone = weakref.ref(Cycle())
    assert gone() is not None
    gc.collect()
    assert gone() is None


def test_what_block_after_block_makes_does_not_add_up(enabled: None) -> None:
    """Python's own rule for a search of the oldest objects does not see them."""
    size = 20_000 + len(gc.get_objects()) // 10
    gone = []
    for _ in range(8):
        with uncollected():
            cycles = [Cycle() for _ in range(size)]
        gone.append(weakref.ref(cycles[0]))
        del cycles
    assert gone[0]() is None


def test_what_is_made_meanwhile_is_not_searched_as_young(enabled: None) -> None:
    gc.collect()
    with uncollected():
        made = [Cycle() for _ in range(20_000)]
    assert gc.get_count()[0] < 5_000
    assert made


def test_what_others_have_frozen_stays_frozen(enabled: None) -> None:
    mine = [Cycle() for _ in range(1_000)]
    gc.freeze()
    try:
        with uncollected():
            made = Cycle()
        # The count itself falls when anybody's frozen object dies, in any thread.
        searched = {id(each) for each in gc.get_objects()}
        assert searched.isdisjoint(id(each) for each in mine)
        assert id(made) in searched
    finally:
        gc.unfreeze()
