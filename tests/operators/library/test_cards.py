"""Every form of the library has a card, and the page shows them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from muntin.errors import DataError
from muntin.operators.library import ALGORITHMS, MODES, cards, info

PAGE = Path(__file__).parents[3] / "docs" / "synopses.md"


def test_every_algorithm_and_mode_has_a_card() -> None:
    for family, names in (("join", ALGORITHMS), ("mode", MODES)):
        assert tuple(card.name for card in cards.CARDS if card.family == family) == names
    assert info("lazy_restore").source == "5.2, Algorithm 5, corrected"
    with pytest.raises(DataError, match="there is no form 'late'"):
        info("late")


def test_the_page_shows_the_cards() -> None:
    command = "python -m muntin.operators.library.cards"
    assert cards.tables() in PAGE.read_text(), f"the cards have changed: paste what {command} says"
