"""Stage B's state: the partials kept between batches, and how far each query is answered."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from muntin._typing import Ints
from muntin.engine.answers.families import FIRST_WINDOW, LAST_WINDOW, Due
from muntin.engine.answers.front import Answered, Answerer, RowTimes, no_rows
from muntin.engine.slices.array_pack import Arrays
from muntin.engine.slices.finals.own_slices import OwnKey
from muntin.engine.slices.newcomers import OldCut, carry_cuts, carry_stores, first_window
from muntin.engine.slices.partials import PartialBatch
from muntin.engine.slices.snapshot import (
    pack,
    pack_base,
    token_of,
    unpack,
    unpack_base,
)
from muntin.engine.slices.store import BEGINNING, REMEMBERED, SliceStore
from muntin.errors import DataError
from muntin.plan.nodes import Final, SharedPlan
from muntin.windows import edge_until


class State:
    """Takes in partials, answers windows when they are due, and forgets what no window needs.

    ``seen`` is the largest event time so far, ``watermark`` the time up to which windows are
    answered. All partials of a stream may go through one state, or those of some groups each
    through another: then each must be told the times of all.
    """

    def __init__(
        self, plan: SharedPlan, row_times: RowTimes | None = None, threads: int = 1
    ) -> None:
        self.plan = plan
        self.threads = threads
        self.watermark: int | None = None
        self.seen: int | None = None
        self.stores = [SliceStore(node) for node in plan.partials]
        # Whether finals may move on by what is sealed, where that pays.
        self.moves = True
        self._row_times = row_times or no_rows
        self._answer = Answerer(plan, self._row_times, threads)
        # The number of each query's next window, and of the first one in an open gap.
        self._next = np.full(len(plan.finals), FIRST_WINDOW)
        self._gaps: dict[str, int] = {}
        # The cuts of slices from before the plan changed.
        self._old_cuts: list[OldCut] = []
        self._is_over = False
        # The tokens of the last snapshots.
        self._taken: list[bytes] = []

    def take(self, partials: Sequence[PartialBatch], latest: int | None) -> None:
        """Take in the partials of a batch and its largest event time."""
        for store, batch in zip(self.stores, partials, strict=True):
            store.add(batch)
        if latest is not None:
            self.seen = latest if self.seen is None else max(self.seen, latest)

    def advance(self, watermark: int) -> Answered:
        """Answer the windows that end at or before a time, and forget what no other needs."""
        if self.watermark is not None and watermark <= self.watermark:
            return Answered()
        self.watermark = watermark
        self._seal(watermark)
        _, slides, phases = self.plan.windows.T
        answered = self._answer_until((watermark - phases) // slides)
        answered.tables = {name: answered.tables[name] for name in answered.last}
        self._evict()
        return answered

    def close(self, names: Collection[str] | None = None) -> Answered:
        """Answer every window that holds a row and has no answer yet; all queries have a table.

        With ``names``, only those of some queries; they answer nothing after it.
        """
        if not self._is_over:
            self._is_over = True
            for store in self.stores:
                store.seal(LAST_WINDOW, may_move=self._may_move)
        last = np.full(len(self.plan.finals), LAST_WINDOW)
        if names is not None:
            asked = np.array([final.name in names for final in self.plan.finals], np.bool_)
            last = np.where(asked, last, self._next - 1)
        return self._answer_until(last)

    def next_windows(self) -> dict[str, int]:
        """The number of the next window of each query."""
        names = [final.name for final in self.plan.finals]
        return dict(zip(names, self._next.tolist(), strict=True))

    def _seal(self, watermark: int) -> None:
        """Seal the slices below the largest edge that the watermark has reached."""
        for store in self.stores:
            classes = self.plan.slicings[store.node.slicing].classes
            store.seal(edge_until(classes, watermark), may_move=self._may_move)

    @property
    def _may_move(self) -> bool:
        # The papers' strategies combine slices as the papers do, and are counted so. Heads of
        # Cutty slices are read when a window ends, which none that is sealed does.
        cutty = self.plan.slicing == "cutty"
        return self.moves and self.plan.strategy == "cells" and not cutty

    def _answer_until(self, last: Ints) -> Answered:
        answered = self._answer(self.stores, Due(self._next, last, self._gaps))
        self._next = np.maximum(self._next, last + 1)
        for final in self.plan.finals:
            if final.query.emit_empty and final.name in answered.last:
                self._gaps[final.name] = answered.last[final.name] + 1
        return answered

    def _evict(self) -> None:
        """Forget the slices that lie before the next window of every query."""
        if not self.plan.finals:
            return
        ranges, slides, phases = self.plan.windows.T
        needed = np.full(len(self.stores), LAST_WINDOW)
        owners = [final.partials for final in self.plan.finals]
        np.minimum.at(needed, owners, phases + self._next * slides - ranges)
        for place, node in enumerate(self.plan.partials):
            # What takes over from a twin must hold what its windows cover.
            if node.twin is not None:
                needed[node.twin] = min(needed[node.twin], needed[place])
        for store, start in zip(self.stores, needed.tolist(), strict=True):
            store.evict(start)

    def adopt(self, plan: SharedPlan) -> None:
        """Go on with another plan, from the next batch on.

        Some queries joined, some left, and some are cut together with others than before. Those
        that stay answer what they would have answered.
        """
        old = self.plan
        seen = BEGINNING - 1 if self.seen is None else self.seen
        stores = carry_stores(self.stores, plan, seen + 1)
        cuts = carry_cuts(old, self._old_cuts, plan, seen, stores)
        queries = {final.name: final.query for final in plan.finals}
        stay = {
            final.name: (int(following), old.partials[final.partials].number)
            for final, following in zip(old.finals, self._next, strict=True)
            if queries.get(final.name) == final.query
        }
        next_windows = np.full(len(plan.finals), FIRST_WINDOW)
        for index, final in enumerate(plan.finals):
            store = stores[final.partials]
            if final.name in stay:
                next_windows[index], number = stay[final.name]
                if number not in (store.node.number, store.node.origin):
                    first = first_window(final, store, cuts, self.watermark)
                    _check_taken_over(final, first, stay[final.name][0])
            elif self.seen is not None:
                next_windows[index] = first_window(final, store, cuts, self.watermark)
        self.plan, self._answer = plan, Answerer(plan, self._row_times, self.threads)
        self.stores, self._old_cuts, self._next = stores, cuts, next_windows
        self._gaps = {name: k for name, k in self._gaps.items() if name in stay}
        self._adopt_techniques()

    def _adopt_techniques(self) -> None:
        """Let what is kept go over to the techniques of the plan."""
        for place, store in enumerate(self.stores):
            if store.moving is not None:
                asked: dict[OwnKey, int] = {}
                for final in self.plan.finals if store.node.is_driven else ():
                    for index, member, technique in final.reads:
                        if technique.is_own and final.partials == place:
                            key = OwnKey.of(technique.name, index, member, final.window)
                            asked[key] = max(asked.get(key, 0), final.window.range)
                store.moving.adopt(store.node, asked)

    def snapshot(self, since: bytes | None = None, **extra: object) -> bytes:
        """The state as bytes, from which :meth:`restore` goes on identically.

        With an earlier snapshot ``since``, of which the first bytes will do, only what changed in
        the meantime. ``extra`` values, which JSON can hold, travel with it.
        """
        token = None if since is None else token_of(since)
        if token is not None and token not in self._taken:
            raise DataError(
                "what changed since that snapshot is not known: it is not one of the last "
                f"{REMEMBERED} that were taken here, nor the one that was restored",
                hint="take a whole snapshot, without since",
            )
        data = pack({**self.described(), "extra": extra}, self.plan, self.stores, token)
        self._remember(token_of(data))
        return data

    def _remember(self, token: bytes) -> None:
        """Be able to tell what changes from now on."""
        others = [each for each in self._taken if each != token]
        self._taken = [*others, token][-REMEMBERED:]
        for place, store in enumerate(self.stores):
            store.mark(token, place)

    def described(self) -> dict[str, Any]:
        """How far the queries are answered: values that JSON can hold, without what is kept."""
        return {
            "watermark": self.watermark,
            "next": self._next.tolist(),
            "gaps": self._gaps,
            "seen": self.seen,
            "cuts": [(cut.number, cut.until, cut.classes) for cut in self._old_cuts],
        }

    def base(self) -> Arrays:
        """All but the sealed entries of stores that keep a log, as arrays."""
        return pack_base(self.described(), self.plan, self.stores)

    @classmethod
    def rebased(
        cls, plan: SharedPlan, arrays: Arrays, stretches: Sequence[Sequence[Arrays]]
    ) -> State:
        """The state that `base` made, with the sealed entries of each store's log."""
        held, stores = unpack_base(arrays, plan, stretches)
        state = cls(plan)
        state._describe_as(held)
        state.stores = stores
        return state

    def keep_logs(self) -> None:
        """Keep sealed entries in logs that never change, from now on, where that can be done."""
        for store in self.stores:
            if self._may_move:
                store.keep_log()

    def resume(
        self,
        held: dict[str, Any],
        marks: Sequence[tuple[int, int]],
        news: Iterable[Sequence[PartialBatch]],
    ) -> None:
        """Go on from a later moment of the same plan.

        Args:
            held: What `described` said then.
            marks: Up to where each store had sealed its slices, and forgotten them.
            news: The partials that came since.
        """
        for partials in news:
            self.take(partials, None)
        self._describe_as(held)
        for store, (frontier, evicted) in zip(self.stores, marks, strict=True):
            if frontier > BEGINNING:
                store.seal(frontier, may_move=self._may_move)
            store.evict(evicted)

    def _describe_as(self, held: dict[str, Any]) -> None:
        self.watermark, self.seen = held["watermark"], held["seen"]
        self._next, self._gaps = np.array(held["next"], np.int64), dict(held["gaps"])
        self._old_cuts = [
            OldCut(number, until, tuple(map(tuple, classes)))
            for number, until, classes in held["cuts"]
        ]

    @classmethod
    def restore(
        cls, plan: SharedPlan, *snapshots: bytes, row_times: RowTimes | None = None
    ) -> tuple[State, dict[str, object]]:
        """The state of a snapshot of the same plan, and what travelled with it.

        Of several, it is that of the last; each one was taken since the one before.
        """
        held, stores = unpack(snapshots, plan)
        state = cls(plan, row_times)
        state._describe_as(held)
        state.stores = stores
        state._remember(token_of(snapshots[-1]))
        return state, held["extra"]


def _check_taken_over(final: Final, first: int, following: int) -> None:
    """Refuse that partials which lack rows of its next window take a query over."""
    if first > following:
        raise DataError(
            f"query {final.name} would lose rows where its tree changes",
            hint="this is a bug in Muntin, please report it",
        )
