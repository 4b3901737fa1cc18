"""Any technique over many groups: its own compiled slide on slices of large arrays."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from numba.extending import overload, register_jitable

from muntin.aggregators.contract import Ints
from muntin.aggregators.kernels import slide_compiled
from muntin.aggregators.operators import Store
from muntin.compiled import compiled


def state_of(states: Any, group: int) -> Any:
    """The state of one group, as views."""
    return type(states)(*(array[group] for array in states))


def _rows(count: int) -> Any:
    if count == 1:
        return register_jitable(lambda states, group: (states[0][group],))
    rest, last = _rows(count - 1), count - 1
    return register_jitable(lambda states, group: (*rest(states, group), states[last][group]))


def _state_of(states: Any, group: Any) -> Any:
    technique, rows = states.instance_class, _rows(len(states))
    return lambda states, group: technique(*rows(states, group))


overload(state_of, strict=False)(_state_of)


def _compiled_advance() -> Any:
    # As for the slide of one group: the cache must see all files of the techniques.
    sources = sorted(Path(__file__).parent.glob("*.py"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()

    def advance(
        op: Any, states: Any, slots: Ints, ranges: Ints, partials: Store, answers: Store
    ) -> None:
        _ = digest
        columns = len(ranges)
        for i in range(len(slots)):
            state = state_of(states, slots[i])
            place = answers[i * columns : (i + 1) * columns]
            slide_compiled(op, state, ranges, partials[i : i + 1], place, 0)

    return compiled(advance)


advance_states = _compiled_advance()
