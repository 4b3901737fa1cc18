"""Questions about one group that differ in constants, answered in as few steps as there can be.

Somebody who asks beside a stream finds the caches full of the stream's own things: what counts is
how much of the interpreter a question touches, more than what it computes.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import TokenType

from muntin.queries.asking.words import Template
from muntin.synopses.fit import Fit
from muntin.synopses.keeps.replica import Version
from muntin.synopses.placement import Found, placed_between
from muntin.synopses.reading import OneRow


class Brief:
    """Texts that differ in RANGE and in the group they ask for, as the only keep answers them."""

    def __init__(self, template: Template, fit: Fit, row: OneRow, length: int) -> None:
        question = fit.question
        self.name = fit.kept.name.lower()
        self._row = row
        self._range = template.numbers[length]
        self._is_text = template.words[length].token_type == TokenType.STRING
        self._keys = [template.numbers[place] for place, _ in fit.keys]
        self._by_watermark = question.as_of == "watermark"
        self._aligned = question.aligned

    def found(self, version: Version, constants: Sequence[str]) -> Found | None:
        """The answer; None where it takes more than that, or must be refused."""
        moment = version.moment
        end = moment.watermark if self._by_watermark else moment.latest
        length = version.kept.lengths.get((constants[self._range], self._is_text))
        if end is None or length is None:
            return None
        if not self._by_watermark:
            end += 1
        placed = placed_between(version, end - length, end, self._aligned)
        if placed is None:
            return None
        keys = [constants[number] for number in self._keys]
        read = self._row.read(version, keys, placed.window)
        return None if read is None else Found(read, version.origin, placed)


def brief_way(template: Template, fit: Fit, row: OneRow) -> Brief | None:
    """How texts are answered whose constants are all RANGE and keys; None if there are others."""
    question = fit.question
    length = question.free.range
    free = {length, *(place for place, _ in fit.keys)}
    if length is None or free != template.numbers.keys() or question.as_of == "at":
        return None
    return Brief(template, fit, row, length)
