"""The rows of an answer: which groups of a keep each of them is of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.engine.rows.dictionary import encode, group
from muntin.synopses.fit import Fit
from muntin.synopses.keeps.replica import Version


@dataclass(frozen=True)
class AnswerRows:
    """The groups that a question takes, and the rows they go into.

    Attributes:
        chosen: The groups of the keep that it takes; None for all.
        numbers: The answer's row of every group of the keep, -1 for none; None where the answer
            has one row for all.
        keys: The group columns of the answer's rows.
        size: How many rows there are.
        in_order: Whether the rows are in order of their keys.
    """

    chosen: Ints | None
    numbers: Ints | None
    keys: tuple[pa.Array, ...]
    size: int
    in_order: bool = False

    def of(self, groups: Ints) -> Ints:
        """The rows of some of the groups."""
        if self.numbers is None:
            return np.zeros(groups.size, np.int64)
        found: Ints = self.numbers[groups]
        return found


def answer_rows(version: Version, fit: Fit, keys: Sequence[Any]) -> AnswerRows:
    """The rows of an answer; ``keys`` are the constants that group columns are compared with."""
    chosen = chosen_groups(version, fit, keys)
    if not fit.groups:
        return AnswerRows(chosen, None, (), 1)
    if chosen is None and fit.is_finest:
        ordered = version.groups.in_order(cast("tuple[int, ...]", fit.groups), version.count)
        return AnswerRows(None, ordered.ranks, ordered.keys, version.count, in_order=True)
    columns = version.groups.columns(version.count)
    places = np.arange(version.count) if chosen is None else chosen
    plain = [columns[each] for each in fit.groups if isinstance(each, int)]
    taken = iter(plain if chosen is None else [each.take(pa.array(chosen)) for each in plain])
    computed = iter(_computed(fit, columns, places))
    found = [next(taken) if isinstance(each, int) else next(computed) for each in fit.groups]
    numbers = np.full(version.count, -1, np.int64)
    if fit.is_finest:
        numbers[places] = np.arange(places.size)
        return AnswerRows(chosen, numbers, tuple(found), places.size)
    joined = group([encode(key) for key in found], places.size)
    numbers[places] = joined.codes
    return AnswerRows(chosen, numbers, joined.keys, joined.count)


def chosen_groups(version: Version, fit: Fit, keys: Sequence[Any]) -> Ints | None:
    """The groups that satisfy the conditions on group columns; None for all."""
    groups, count = version.groups, version.count
    listed: Ints | None = None
    for (_, place), value in zip(fit.keys, keys, strict=True):
        some = groups.of_value(place, value, count)
        listed = some if listed is None else np.intersect1d(listed, some, assume_unique=True)
    if fit.selector is None:
        return listed
    columns = groups.columns(count)
    arrays = [columns[place] for place in fit.kept.key_names.values()]
    (evaluated,) = fit.selector(pa.table(arrays, names=list(fit.kept.key_names)))
    held = evaluated.values.fill_null(False).to_numpy(zero_copy_only=False)
    found: Ints = np.flatnonzero(held)
    return found if listed is None else np.intersect1d(listed, found, assume_unique=True)


def _computed(fit: Fit, columns: Sequence[pa.Array], places: Ints) -> list[pa.Array]:
    """The groups that are expressions over the keep's."""
    names = fit.kept.key_names
    if not fit.grouper.bounds:
        return []
    arrays = [columns[place].take(pa.array(places)) for place in names.values()]
    return [each.values for each in fit.grouper(pa.table(arrays, names=list(names)))]
