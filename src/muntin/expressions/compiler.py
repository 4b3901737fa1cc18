"""From typed expressions to polars expressions."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from muntin.expressions import types as t
from muntin.expressions.parts import Part, constant, null
from muntin.expressions.registry import functions
from muntin.expressions.tree import Call, Column, Literal, Node, walk

# Functions that compile to an expression in which each operand occurs once.
PLAIN = frozenset(["and", "or", "not", "=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "cast"])
# How often an operand may occur in what another function compiles to, about.
REPEATED = 4
# Operands heavier than this are computed once, into a column of their own.
MAX_WEIGHT = 40


class Compiler:
    """Compiles expressions that will be evaluated together.

    `names` maps input columns to the names they have in the frame (polars reads some names as
    patterns, so ours are plain). `stages` are lists of columns to add, in this order, before the
    compiled expressions can be evaluated: empty unless expressions are deep.
    """

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.stages: list[list[pl.Expr]] = []
        self._known: dict[Node, tuple[Part, int, int]] = {}
        self._constant: set[Node] = set()

    def compile(self, node: Node) -> Part:
        """The polars expressions for a node."""
        # Operands before what uses them, without recursion: expressions may be deep.
        for below in reversed(list(walk(node))):
            if below not in self._known:
                self._known[below] = self._visit(below)
        return self._known[node][0]

    def _visit(self, node: Node) -> tuple[Part, int, int]:
        """The part, its weight (about the size of its expressions) and its earliest stage."""
        if isinstance(node, Column):
            return self._column(node), 1, 0
        if isinstance(node, Literal):
            self._constant.add(node)
            return Part(constant(node.value, node.type)), 1, 0
        return self._call(node)

    def _column(self, node: Column) -> Part:
        name = self.names.setdefault(node.name, f"c{len(self.names)}")
        value = pl.col(name)
        return Part(value.to_physical() if t.is_decimal(node.type) else value)

    def _call(self, node: Call) -> tuple[Part, int, int]:
        operands = [self._operand(arg) for arg in node.args]
        part = functions()[node.function].build(node, [operand for operand, _, _ in operands])
        if all(arg in self._constant for arg in node.args):
            self._constant.add(node)
            return _folded(part, node.type), 1, 0
        plain = part.failed is None and node.function in PLAIN
        weight = 1 + (1 if plain else REPEATED) * sum(weight for _, weight, _ in operands)
        return part, weight, max((stage for _, _, stage in operands), default=0)

    def _operand(self, node: Node) -> tuple[Part, int, int]:
        part, weight, stage = self._known[node]
        if weight > MAX_WEIGHT:
            self._known[node] = self._store(part, stage), 1, stage + 1
        return self._known[node]

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


def _folded(part: Part, kind: pa.DataType) -> Part:
    """A part without columns, computed at once.

    polars gives such a part one row instead of the frame's height, which then fits nothing else.
    """
    failed = pl.lit(value=False) if part.failed is None else part.failed
    row = pl.DataFrame({"": [None]}).select(value=part.value, failed=failed).row(0)
    if row[1]:
        return Part(null(kind), pl.lit(value=True))
    return Part(constant(row[0], kind))
