"""The techniques compiled: numba picks the operator's and the technique's functions by type.

Importing this brings numba; nothing is compiled before `slide_compiled` is called. Each pair of
operator and technique is compiled once and cached on disk.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from numba.core import cgutils
from numba.extending import intrinsic, overload, register_jitable

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.aggregators import contract, operators
from muntin.aggregators.operators import Least, Store, Sum
from muntin.aggregators.registry import names, state_class
from muntin.aggregators.techniques import slickdeque_noninv
from muntin.aggregators.techniques.slickdeque_codes import slide_codes

for _function in contract.SHARED:
    register_jitable(forceinline=True)(_function)


def _by_technique(function: Callable[..., Any], default: Any = None) -> None:
    """Compile the contract's function as the one of the state's class."""
    name = function.__name__

    @overload(function, strict=False, jit_options={"forceinline": True})
    def choose(op: Any, state: Any, *rest: Any) -> Any:
        return getattr(state.instance_class, name, default)


for _function in (contract.insert, contract.evict, contract.query):
    _by_technique(_function)
_by_technique(contract.slide, contract.slide_by_one)


def _lane_by_lane(instruction: str) -> Any:
    """A function of two rows of lanes that stays in registers."""

    @intrinsic
    def apply(typing_context: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            unpack: Any = cgutils.unpack_tuple
            lanes = zip(*(unpack(builder, arg) for arg in args), strict=True)
            results = [getattr(builder, instruction)(x, y) for x, y in lanes]
            return context.make_tuple(builder, signature.return_type, results)

        return a(a, b), generate

    return apply


_add_lanes = _lane_by_lane("add")
_subtract_lanes = _lane_by_lane("sub")


@overload(operators.combine, strict=False)
def _combine(op: Any, a: Any, b: Any) -> Any:
    if op.instance_class is Sum:
        return lambda op, a, b: a + b
    if op.instance_class is Least:
        return lambda op, a, b: min(b, a)
    return lambda op, a, b: _add_lanes(a, b)


@overload(operators.inverse, strict=False)
def _inverse(op: Any, a: Any, b: Any) -> Any:
    if op.instance_class is Sum:
        return lambda op, a, b: a - b
    return lambda op, a, b: _subtract_lanes(a, b)


@overload(operators.selects_later, strict=False)
def _selects_later(op: Any, a: Any, b: Any) -> Any:
    return lambda op, a, b: b <= a


@overload(slickdeque_noninv.slide_one, strict=False, jit_options={"forceinline": True})
def _slide_one(op: Any, state: Any, ranges: Any, partials: Any, answers: Any, first: Any) -> Any:
    return slide_codes


@overload(operators.commutes, strict=False)
def _commutes(op: Any) -> Any:
    return lambda op: True


@overload(operators.load, strict=False)
def _load(op: Any, store: Any, index: Any) -> Any:
    if store.ndim == 1:
        return lambda op, store, index: store[index]
    read = _reader(len(op[0]))
    return lambda op, store, index: read(store, index)


@overload(operators.take, strict=False)
def _take(op: Any, values: Any, index: Any) -> Any:
    if op.instance_class is Least:
        return lambda op, values, index: values[index] ^ op.flip
    return _load(op, values, index)


@overload(operators.give, strict=False)
def _give(op: Any, answers: Any, index: Any, partial: Any) -> Any:
    if op.instance_class is Least:

        def give_flipped(op: Any, answers: Any, index: Any, partial: Any) -> None:
            answers[index] = partial ^ op.flip

        return give_flipped
    return _save(op, answers, index, partial)


def _reader(width: int) -> Any:
    if width == 1:
        return register_jitable(lambda store, index: (store[index, 0],))
    rest, last = _reader(width - 1), width - 1
    return register_jitable(lambda store, index: (*rest(store, index), store[index, last]))


@overload(operators.save, strict=False)
def _save(op: Any, store: Any, index: Any, partial: Any) -> Any:
    if store.ndim == 1:

        def save_one(op: Any, store: Any, index: Any, partial: Any) -> None:
            store[index] = partial

        return save_one
    write = _writer(len(op[0]))
    return lambda op, store, index, partial: write(store, index, partial)


def _writer(width: int) -> Any:
    last = width - 1
    if width == 1:

        def write_one(store: Any, index: Any, partial: Any) -> None:
            store[index, 0] = partial[0]

        return register_jitable(write_one)
    rest = _writer(last)

    def write(store: Any, index: Any, partial: Any) -> None:
        rest(store, index, partial)
        store[index, last] = partial[last]

    return register_jitable(write)


def _digest() -> str:
    """A hash of the sources that kernels are compiled from."""
    classes = [state_class(name) for name in names()]
    modules = {function.__module__ for function in (*classes, *contract.SHARED, slide_codes)}
    files = [str(sys.modules[name].__file__) for name in sorted({*modules, __name__})]
    return hashlib.sha256(b"".join(Path(file).read_bytes() for file in files)).hexdigest()


def _compiled_slide() -> Any:
    # numba's cache looks at the file of the compiled function only. What the function captures is
    # part of the cache's key.
    digest = _digest()

    # Nothing is allocated, so nothing is counted: reference counts would cost more than the work.
    @partial(compiled, _nrt=False)
    def slide(
        op: Any, state: Any, ranges: Ints, partials: Store, answers: Store, first: int
    ) -> int:
        _ = digest
        return contract.slide(op, state, ranges, partials, answers, first)

    return slide


slide_compiled = _compiled_slide()
