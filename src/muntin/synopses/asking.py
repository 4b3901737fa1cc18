"""Asking: questions read once per shape, and answered from the newest version of a keep."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import is_
from typing import Any

import pyarrow as pa
from sqlglot.tokenizer_core import TokenType

from muntin.errors import MuntinError, QueryError, QuestionError, did_you_mean
from muntin.queries import Question, read_question
from muntin.queries.asking.questions import whole_number
from muntin.queries.asking.words import QuickWords, Template, Word, quick_words_of, shape_of
from muntin.synopses.answer import Answer, Isolation, Told
from muntin.synopses.brief import Brief, brief_way
from muntin.synopses.fit import Fit, UnfitError, fit, problems_of, would_do
from muntin.synopses.keeps.kept import Kept
from muntin.synopses.keeps.latest_rows import RowVersion
from muntin.synopses.keeps.replica import Version
from muntin.synopses.options import MAX_ROWS, TIMEOUT, options_of
from muntin.synopses.placement import Found, Placed, placed_window, refusal
from muntin.synopses.prepared import Prepared
from muntin.synopses.reading import Budget, OneRow, Reading, one_row
from muntin.synopses.reading.latest_rows import RowReader
from muntin.windows import DurationLike

# Shapes of questions, and constants of one shape, that are remembered.
_MOST_SHAPES = 512
_MOST_FITS = 256


@dataclass(frozen=True)
class Versions:
    """The newest version of every keep, all after the same batch; keeps by name in lower case.

    ``rows`` are those of keeps of the latest rows.
    """

    by_name: Mapping[str, Version] = field(default_factory=dict)
    rows: Mapping[str, RowVersion] = field(default_factory=dict)

    @cached_property
    def kept(self) -> tuple[Kept, ...]:
        """The keeps of slices."""
        return tuple([version.kept for version in self.by_name.values()])

    def of_rows(self, source: str, several: bool) -> list[RowVersion]:
        """The latest rows that are kept of one stream."""
        found = self.rows.values()
        return [
            each for each in found if not several or each.kept.keep.source.lower() == source.lower()
        ]

    def of(self, source: str, several: bool) -> list[Version]:
        """Those of one stream."""
        found = self.by_name.values()
        return [
            each for each in found if not several or each.kept.keep.source.lower() == source.lower()
        ]


@dataclass
class _Shape:
    """What questions that differ in constants have in common."""

    question: Question
    free: frozenset[int]
    # The words of constants that are not free.
    fixed: tuple[int, ...]
    fits: dict[Hashable, _Fitted] = field(default_factory=dict)


@dataclass(frozen=True)
class _Fitted:
    """How keeps answer a question; ``row`` where a single one does, from plain numbers."""

    fits: list[Fit]
    row: OneRow | None


@dataclass(frozen=True)
class _Memory:
    """What was read of questions while these keeps were there: shapes of other keeps are gone."""

    kept: tuple[Kept, ...]
    shapes: dict[Hashable, _Shape] = field(default_factory=dict)
    briefs: dict[Template, Brief] = field(default_factory=dict)

    def is_of(self, kept: tuple[Kept, ...]) -> bool:
        """Whether the keeps are still the same."""
        return len(kept) == len(self.kept) and all(map(is_, kept, self.kept))


class Asking:
    """What answers questions about the keeps of some streams.

    Args:
        versions: Gives the newest versions; called once per try.
        tables: The columns of the tables that keeps join.
        several: Whether FROM tells several streams apart.
        restore: From a table to the frame that users see.
        others: What answers where none of the keeps does.
    """

    def __init__(
        self,
        versions: Callable[[], Versions],
        tables: Callable[[], Mapping[str, pa.Schema]] = dict,
        *,
        several: bool = False,
        restore: Callable[[], Callable[[pa.Table], Any]] | None = None,
        others: Asking | None = None,
    ) -> None:
        self._versions = versions
        self._others = others
        self._tables = tables
        self._several = several
        self._restore = restore
        self._memory = _Memory(())
        self._lock = threading.Lock()
        self._row_reader = RowReader()

    def ask(
        self,
        sql: str,
        *,
        isolation: Isolation = "lws",
        timeout: DurationLike = TIMEOUT,
        max_rows: int = MAX_ROWS,
    ) -> Answer:
        """Answer a question from what is kept."""
        options = options_of(isolation, timeout, max_rows)
        return self._answer_or_others(sql, quick_words_of(sql), *options)

    def prepare(
        self,
        sql: str,
        *,
        isolation: Isolation = "lws",
        timeout: DurationLike = TIMEOUT,
        max_rows: int = MAX_ROWS,
    ) -> Prepared:
        """A question with ``?`` for constants, to be asked with values for them."""
        options = options_of(isolation, timeout, max_rows)
        return Prepared(sql, lambda words: self._answer_or_others(sql, words, *options))

    def _answer_or_others(
        self, sql: str, words: Sequence[Word], isolation: Isolation, seconds: float, rows: int
    ) -> Answer:
        began = time.perf_counter()
        try:
            return self._answer(sql, words, isolation, seconds, rows)
        except QuestionError as error:
            if self._others is None or time.perf_counter() - began > seconds:
                raise
            try:
                others = self._others
                return others._answer(sql, words, isolation, seconds, rows)  # noqa: SLF001 - as own
            except QuestionError:
                # What would help is a keep: that is what the first one says.
                raise error from None

    def _answer(
        self, sql: str, words: Sequence[Word], isolation: Isolation, seconds: float, rows: int
    ) -> Answer:
        began = time.perf_counter()
        budget = None
        versions = self._versions()
        for tries in (1, 2):
            found: Told
            brief = self._briefly(words, versions)
            if brief is not None:
                found = brief
            else:
                budget = budget or Budget.of(seconds, rows)
                found = self._once(sql, words, versions, budget)
            newest = self._versions()
            is_newest = newest is versions
            if isolation == "ws" or is_newest or tries == 2:
                break
            versions = newest
        said: Isolation = "lws" if isolation == "lws" and is_newest else "ws"
        took = 1000 * (time.perf_counter() - began)
        if self._restore is None:
            return Answer(found, said, took)
        return Answer(found, said, took, self._restore())

    def _briefly(self, words: Sequence[Word], versions: Versions) -> Found | None:
        """The answer to a question of a text that was read before, if it takes no more."""
        if not isinstance(words, QuickWords):
            return None
        memory = self._memory
        known = memory.briefs.get(words.template)
        if known is None or not memory.is_of(versions.kept):
            return None
        return known.found(versions.by_name[known.name], words.constants)

    def _once(self, sql: str, words: Sequence[Word], versions: Versions, budget: Budget) -> Told:
        """The answer from given versions."""
        shape = self._shape(sql, words, versions)
        if shape.question.query.window.measure == "rows":
            return self._of_rows(shape.question, sql, words, versions, budget)
        try:
            fitted = self._fits(shape, sql, words, versions)
        except QueryError as error:
            raise problems_of(error) from None
        self._remember(words, fitted, versions)
        # Not the shape's: what is not free, as in AS OF -5, is as this text has it.
        question = fitted.fits[0].question
        chosen, placed = self._choose(fitted.fits, question, words, versions)
        version = versions.by_name[chosen.kept.name.lower()]
        keys = [words[place].text for place, _ in chosen.keys]
        window = None if placed is None else placed.window
        read = None
        if fitted.row is not None and window is not None:
            read = fitted.row.read(version, keys, window)
        if read is not None:
            return Found(read, version.origin, placed)
        limit = _limit(question, sql, words)
        whole = Reading(version, chosen, keys, window, budget).read(limit)
        return Found(whole, version.origin, placed)

    def _of_rows(
        self,
        question: Question,
        sql: str,
        words: Sequence[Word],
        versions: Versions,
        budget: Budget,
    ) -> Told:
        """The answer to a question about the latest rows."""
        held = versions.of_rows(question.query.source, self._several)
        limit = _limit(question, sql, words)
        return self._row_reader.answer(
            question, words, held, budget, limit, lambda: read_question(sql, words)
        )

    def _shape(self, sql: str, words: Sequence[Word], versions: Versions) -> _Shape:
        """The question of these words, or of others that differ in constants."""
        # Another thread may go on with other keeps meanwhile: what it remembers is not for these.
        memory = self._memory
        if not memory.is_of(versions.kept):
            memory = _Memory(versions.kept)
            self._memory = memory
        key = shape_of(words)
        found = memory.shapes.get(key)
        if found is None:
            question = read_question(sql, words)
            held = versions.of(question.query.source, self._several)
            free = _free(question, [each.kept for each in held])
            found = _Shape(question, free, _fixed(words, free))
            with self._lock:
                if len(memory.shapes) >= _MOST_SHAPES:
                    memory.shapes.clear()
                memory.shapes[key] = found
        return found

    def _fits(self, shape: _Shape, sql: str, words: Sequence[Word], versions: Versions) -> _Fitted:
        """How keeps answer the question; the reason why none does is raised."""
        constants = tuple([words[place].text for place in shape.fixed])
        known = shape.fits.get(constants)
        if known is not None:
            return known
        question = read_question(sql, words)
        held = versions.of(question.query.source, self._several)
        if not held:
            raise self._nothing(question, versions)
        fits, reasons = [], []
        for version in held:
            try:
                fits.append(fit(question, version.kept, self._tables(), shape.free))
            except UnfitError as error:
                reasons.append((error.near, error.reason, version))
        if not fits:
            near = max(reasons, key=lambda each: each[0])
            raise refusal(question, near[2], near[1], words)
        found = _Fitted(fits, one_row(fits[0]) if len(fits) == 1 else None)
        with self._lock:
            if len(shape.fits) >= _MOST_FITS:
                shape.fits.clear()
            shape.fits[constants] = found
        return found

    def _remember(self, words: Sequence[Word], fitted: _Fitted, versions: Versions) -> None:
        """Take note of a text that can be answered briefly from now on."""
        memory = self._memory
        if (
            fitted.row is None
            or not isinstance(words, QuickWords)
            or words.template in memory.briefs
        ):
            return
        found = brief_way(words.template, fitted.fits[0], fitted.row)
        if found is not None and memory.is_of(versions.kept):
            with self._lock:
                if len(memory.briefs) >= _MOST_SHAPES:
                    memory.briefs.clear()
                memory.briefs[words.template] = found

    def _nothing(self, question: Question, versions: Versions) -> MuntinError:
        source = question.query.source
        sources = {each.kept.keep.source for each in versions.by_name.values()}
        near = did_you_mean(source, sources) if self._several and sources else None
        # A list of other streams would be no help: this one may well be there.
        near = near if near is not None and near.startswith("did you mean") else None
        rows = versions.of_rows(source, self._several)
        if rows:
            kept = "; ".join(str(each.kept.keep) for each in rows)
            return QuestionError(
                f"nothing kept of {source} answers a RANGE, only ROWS: {kept}",
                hint=f"ask over [ROWS n], or keep slices of time: {would_do(question, None)}",
            )
        return QuestionError(
            f"nothing is kept of {source}",
            hint=near or f"keep something first: {would_do(question, None)}",
        )

    def _choose(
        self, fits: Sequence[Fit], question: Question, words: Sequence[Word], versions: Versions
    ) -> tuple[Fit, Placed | None]:
        """The keep that answers exactly with the widest slices, or else with the finest."""
        if len(fits) == 1:
            version = versions.by_name[fits[0].kept.name.lower()]
            return fits[0], placed_window(version, question, words)
        found: list[tuple[bool, bool, int, Fit, Placed | None]] = []
        refused: list[MuntinError] = []
        for each in fits:
            version = versions.by_name[each.kept.name.lower()]
            try:
                placed = placed_window(version, question, words)
            except MuntinError as error:
                refused.append(error)
                continue
            cells = not each.is_bounded and all(wanted.is_exact for wanted in each.conditions)
            exact = cells and (placed is None or placed.window.outer == placed.window.inner)
            slide = each.kept.keep.slide
            found.append((not exact, each.is_bounded, -slide if exact else slide, each, placed))
        if not found:
            raise refused[0]
        *_, chosen, placed = min(found, key=lambda each: each[:3])
        return chosen, placed


def _free(question: Question, held: Sequence[Kept]) -> frozenset[int]:
    """The words of a question whose constants change nothing but the window and the groups.

    A constant compared with a group column is one where every keep has that group, and all its
    rows: then only the group that is looked up depends on it.
    """
    free = {question.free.range, question.free.at, question.free.limit} - {None}
    names = [name.lower() for _, name in question.free.keys]
    for place, name in question.free.keys:
        if names.count(name.lower()) == 1 and all(_is_key(each, name, question) for each in held):
            free.add(place)
    return frozenset(place for place in free if place is not None)


def _fixed(words: Sequence[Word], free: frozenset[int]) -> tuple[int, ...]:
    """The words of constants that a question is bound with."""
    kinds = (TokenType.STRING, TokenType.NUMBER)
    places = (place for place, word in enumerate(words) if word.token_type in kinds)
    return tuple(place for place in places if place not in free)


def _is_key(kept: Kept, name: str, question: Question) -> bool:
    if kept.keep.query.where is not None or kept.keep.query.joins or question.query.joins:
        return False
    found = [each for each in kept.key_names if each.lower() == name.lower()]
    if not found:
        return False
    kind = kept.node.grouping[kept.key_names[found[0]]].type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _limit(question: Question, sql: str, words: Sequence[Word]) -> int | None:
    place = question.free.limit
    if place is None:
        return question.limit
    found = whole_number(words[place].text)
    return read_question(sql, words).limit if found is None else found
