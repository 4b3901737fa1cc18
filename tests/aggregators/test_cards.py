"""The page of cards says what the techniques say."""

from __future__ import annotations

from pathlib import Path

from muntin.aggregators import cards, names

PAGE = Path(__file__).parents[2] / "docs" / "techniques.md"


def test_the_page_is_up_to_date() -> None:
    command = "python -m muntin.aggregators.cards > docs/techniques.md"
    assert PAGE.read_text() == cards.page(), f"the cards have changed: run {command}"


def test_every_technique_has_a_card() -> None:
    headings = [line[3:] for line in PAGE.read_text().splitlines() if line.startswith("## ")]
    assert headings == list(names())
