"""Functions by name: how each is typed, and how it is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from muntin.display import count
from muntin.expressions.tree import BindingError, Call, Node

if TYPE_CHECKING:
    from muntin.expressions.evaluation.parts import Part


@dataclass(frozen=True)
class Function:
    """One operator or function of the allow-list.

    `bind` takes the typed arguments, coerces them as Spark does and says the result's type, or
    refuses them; `build` compiles a bound call from its compiled arguments. `most` None means
    any number of arguments.
    """

    name: str
    least: int
    most: int | None
    bind: Callable[[str, list[Node]], Node]
    build: Callable[[Call, list[Part]], Part]


def apply(name: str, args: list[Node]) -> Node:
    """The typed call of a known function, or an error about its arguments."""
    function = functions()[name]
    if len(args) < function.least or (function.most is not None and len(args) > function.most):
        raise BindingError(
            f"{name} takes {_arity(function)}, not {len(args)}",
            hint="see the functions that expressions may use in the documentation",
        )
    return function.bind(name, args)


@cache
def functions() -> Mapping[str, Function]:
    """Every function of the allow-list, loaded when the first expression is bound."""
    # The families import polars, which takes longer than everything else here together.
    from muntin.expressions.functions import FAMILIES  # noqa: PLC0415

    return {function.name: function for family in FAMILIES for function in family}


def _arity(function: Function) -> str:
    if function.most is None:
        return f"at least {count(function.least, 'argument')}"
    if function.least == function.most:
        return count(function.least, "argument")
    return f"{function.least} to {function.most} arguments"
