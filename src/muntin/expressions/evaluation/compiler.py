"""From typed expressions to polars expressions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl
import pyarrow as pa

from muntin.expressions import types as t
from muntin.expressions.binding.render import render
from muntin.expressions.evaluation.parts import Part, constant, physical
from muntin.expressions.nested import can_fail, is_step
from muntin.expressions.registry import functions
from muntin.expressions.tree import BindingError, Call, Column, Literal, Node, walk

# Functions that compile to an expression in which each operand occurs once.
PLAIN = frozenset(["and", "or", "not", "=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "cast"])
# How often an operand may occur in what another function compiles to, about.
REPEATED = 4
# Operands heavier than this are computed once, into a column of their own.
MAX_WEIGHT = 40
# Functions that take a constant as one value behind their first operand. Elsewhere polars may give
# all rows the answer of one, or one row for all; and it takes no constant before a computed operand
# that happens to be the same in all rows.
COMPARISONS = frozenset(["=", "<>", "<", "<=", ">", ">=", "<=>", "in"])
ARITHMETIC = frozenset(["+", "-", "*", "/", "%", "div"])
CHOICES = frozenset(["greatest", "least", "coalesce", "nanvl"])
TAKE_ONE = COMPARISONS | ARITHMETIC | CHOICES
TAKE_ONE |= frozenset(["concat", "startswith", "endswith", "contains", "instr"])


@dataclass(frozen=True)
class Constant:
    """A part without columns, computed when it is compiled."""

    value: object
    type: pa.DataType
    failed: bool = False

    @property
    def part(self) -> Part:
        """One value for all rows."""
        value = constant(self.value, self.type)
        return Part(value, pl.lit(value=True) if self.failed else None)


class Compiler:
    """Compiles expressions that will be evaluated together.

    `names` maps input columns to the names they have in the frame (polars reads some names as
    patterns, so ours are plain), and `nested` does the same for parts of nested ones.
    `constants` are columns to add that hold one value in every row.
    `stages` are lists of columns to add after these, in this order, before the compiled
    expressions can be evaluated: empty unless expressions are deep.
    """

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.nested: dict[Node, str] = {}
        self.constants: dict[str, pl.Series] = {}
        self.stages: list[list[pl.Expr]] = []
        self._known: dict[Node, tuple[Part, int, int]] = {}
        self._constant: dict[Node, Constant] = {}
        self._spread: dict[str, Part] = {}

    def compile(self, node: Node) -> Part:
        """The polars expressions for a node."""
        # Operands before what uses them, without recursion: expressions may be deep.
        for below in reversed(list(walk(node, is_step))):
            if below not in self._known:
                self._known[below] = self._visit(below)
        return self._known[node][0]

    def constant(self, node: Node) -> Constant:
        """The value of a node without columns."""
        self.compile(node)
        return self._constant[node]

    def _visit(self, node: Node) -> tuple[Part, int, int]:
        """The part, its weight (about the size of its expressions) and its earliest stage."""
        if isinstance(node, Column):
            return self._column(node), 1, 0
        if is_step(node):
            return self._part(node), 1, 0
        if isinstance(node, Literal):
            return self._settle(node, Constant(node.value, node.type))
        return self._call(node)

    def _settle(self, node: Node, value: Constant) -> tuple[Part, int, int]:
        self._constant[node] = value
        return value.part, 1, 0

    def _column(self, node: Column) -> Part:
        name = self.names.setdefault(node.name, f"c{len(self.names)}")
        value = pl.col(name)
        return Part(value.to_physical() if t.is_decimal(node.type) else value)

    def _part(self, node: Node) -> Part:
        """A part of a nested column, which the frame has as a column, and where it is missing."""
        name = self.nested.setdefault(node, f"n{len(self.nested)}")
        value = pl.col(name)
        failed = pl.col(f"{name}_failed") if can_fail(node) else None
        return Part(value.to_physical() if t.is_decimal(node.type) else value, failed)

    def _call(self, node: Call) -> tuple[Part, int, int]:
        if all(arg in self._constant for arg in node.args):
            return self._settle(node, _folded(node, [self._constant[arg] for arg in node.args]))
        build = functions()[node.function].build
        operands = [self._operand(node, position) for position in range(len(node.args))]
        part = build(node, [operand for operand, _, _ in operands])
        plain = part.failed is None and node.function in PLAIN
        weight = 1 + (1 if plain else REPEATED) * sum(weight for _, weight, _ in operands)
        return part, weight, max((stage for _, _, stage in operands), default=0)

    def _operand(self, call: Call, position: int) -> tuple[Part, int, int]:
        node = call.args[position]
        part, weight, stage = self._known[node]
        if node in self._constant:
            fixed = self._constant[node]
            if not _stays_one(call, position, fixed):
                return self._column_of(fixed), 1, 0
            return replace(part, present=fixed.value is not None), 1, 0
        if weight > MAX_WEIGHT:
            self._known[node] = self._store(part, stage), 1, stage + 1
        return self._known[node]

    def _column_of(self, fixed: Constant) -> Part:
        """The constant as a column of the frame's height."""
        key = repr(fixed)  # 0.0 equals -0.0
        if key not in self._spread:
            part = fixed.part
            failed = None if part.failed is None else self._add_constant(part.failed)
            self._spread[key] = Part(self._add_constant(part.value), failed)
        return self._spread[key]

    def _add_constant(self, value: pl.Expr) -> pl.Expr:
        name = f"k{len(self.constants)}"
        self.constants[name] = pl.select(value).to_series().alias(name)
        return pl.col(name)

    def _store(self, part: Part, stage: int) -> Part:
        while len(self.stages) <= stage:
            self.stages.append([])
        columns = self.stages[stage]
        name = f"s{stage}_{len(columns)}"
        columns.append(part.value.alias(name))
        if part.failed is None:
            return Part(pl.col(name))
        columns.append(part.failed.alias(f"{name}_failed"))
        return Part(pl.col(name), pl.col(f"{name}_failed"))


def _stays_one(call: Call, position: int, fixed: Constant) -> bool:
    """Whether a function may take a constant operand as one value beside its other operands."""
    if call.function == "case":
        # The conditions and ELSE give the height.
        return position % 2 == 1
    return position > 0 and call.function in TAKE_ONE and not (fixed.failed or fixed.value is None)


def folded(node: Node) -> Constant:
    """The value of an expression without columns, computed as that of a column would be."""
    return Compiler().constant(node)


def _folded(call: Call, args: list[Constant]) -> Constant:
    """The call on a frame of one row.

    Its arguments are columns there: of literals polars computes some things in ways of its own.
    """
    columns = {f"a{i}": [arg.value] for i, arg in enumerate(args)}
    schema = {f"a{i}": physical(arg.type) for i, arg in enumerate(args)}
    columns["failed"], schema["failed"] = [True], pl.Boolean()
    parts = [
        Part(pl.col(f"a{i}"), pl.col("failed") if arg.failed else None)
        for i, arg in enumerate(args)
    ]
    part = functions()[call.function].build(call, parts)
    failed = pl.lit(value=False) if part.failed is None else part.failed
    try:
        frame = pl.DataFrame(columns, schema).select(value=part.value, failed=failed)
    except pl.exceptions.PolarsError as error:
        raise BindingError(
            f"{render(call)} cannot be computed: {error}", hint="write its value instead"
        ) from error
    value, fails = frame.row(0)
    return Constant(None if fails else value, call.type, failed=fails)
