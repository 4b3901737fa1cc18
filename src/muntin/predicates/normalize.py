"""From typed conditions to formulas over steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Context

import pyarrow as pa

from muntin.expressions import Bound, Evaluator, subexpression
from muntin.expressions import types as t
from muntin.expressions.tree import Call, Column, Literal, Node, walk
from muntin.predicates.formula import (
    FALSE,
    IS_FALSE,
    IS_NULL,
    IS_TRUE,
    NOT,
    NULL,
    TRUE,
    Atom,
    Case,
    Connective,
    Constant,
    Formula,
    Mapped,
)
from muntin.predicates.order import NAN, Code, after, double_of, order_of
from muntin.predicates.regions import Region

FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<=", "<=>": "<=>"}
# A comparison of two expressions is one of these three, or the opposite of one.
OPPOSITE = {"<>": "=", "<=": ">", ">=": "<"}
MAX_NODES = 1 << 12


@dataclass
class Normalizer:
    """Reads conditions, and collects the expressions that their atoms are about.

    `dimensions` maps keys to expressions, and `failing` says which of them can fail. `nodes`
    has the keys of nodes seen, which conditions bound together have in common. `patterns` are
    formulas over numbered cuts, with where they are true and where they fail, as solved.
    """

    dimensions: dict[str, Bound] = field(default_factory=dict)
    failing: dict[str, bool] = field(default_factory=dict)
    nodes: dict[int, tuple[Node, str]] = field(default_factory=dict)
    patterns: dict[Formula, tuple[Region | None, Region | None]] = field(default_factory=dict)

    def formula(self, node: Node) -> Formula:
        """The condition as a formula; what it cannot take apart is an atom of its own."""
        if isinstance(node, Literal):
            return Constant(_state(node.value))
        if isinstance(node, Call) and node.function in HANDLERS:
            return HANDLERS[node.function](self, node)
        return self.bit(node)

    def bit(self, node: Node) -> Formula:
        """A condition evaluated row by row: ranks of FALSE and TRUE."""
        folded = fold(node)
        if folded is not None and not folded.failed:
            return Constant(_state(folded.value))
        return Atom(self.dimension(node), (1,), (FALSE, TRUE), NULL)

    def dimension(self, node: Node) -> str:
        """The key under which an expression is a dimension."""
        known = self.nodes.get(id(node))
        if known is not None and known[0] is node:
            return known[1]
        bound = subexpression(node)
        if len(self.nodes) >= MAX_NODES:
            self.nodes.clear()
        self.nodes[id(node)] = node, bound.key
        if bound.key not in self.dimensions:
            self.dimensions[bound.key] = bound
            self.failing[bound.key] = not isinstance(node, Column) and bound.can_fail
        return bound.key

    def steps(
        self, node: Node, cuts: Iterable[tuple[Code, int]], first: int, null: int = NULL
    ) -> Atom:
        """The atom with these states of an expression's values: `first`, then each cut's."""
        base, moves = unconverted(node)
        for move in moves:
            cuts = [(move(place), state) for place, state in cuts]
        places, states = order_of(base.type).within(cuts, first)
        return Atom(self.dimension(base), tuple(places), tuple(states), null)

    def connective(self, call: Call) -> Formula:
        """AND and OR."""
        return Connective(call.function == "and", tuple(self.formula(arg) for arg in call.args))

    def case(self, call: Call) -> Formula:
        """CASE with conditions as values."""
        *branches, last = [self.formula(arg) for arg in call.args]
        for place in range(len(branches) - 2, -1, -2):
            last = Case(branches[place], branches[place + 1], last)
        return last

    def coalesce(self, call: Call) -> Formula:
        """The first condition that is not NULL."""
        *firsts, last = [self.formula(arg) for arg in call.args]
        for first in reversed(firsts):
            last = Case(Mapped(IS_NULL, first), last, first)
        return last

    def is_null(self, call: Call) -> Formula:
        """IS NULL of a condition or of any other expression."""
        [operand] = call.args
        if operand.type == t.BOOLEAN:
            return Mapped(IS_NULL, self.formula(operand))
        if fold(operand) is not None:
            return self.bit(call)
        return self.steps(operand, (), FALSE, null=TRUE)

    def is_nan(self, call: Call) -> Formula:
        """NaN is the last of all values, and NULL is not NaN."""
        if fold(call) is not None:
            return self.bit(call)
        return self.steps(call.args[0], [(NAN, TRUE)], FALSE, null=FALSE)

    def comparison(self, call: Call) -> Formula:
        """A comparison: steps where one side is constant."""
        left, right = (fold(arg) for arg in call.args)
        if (left and right) or (left and left.failed) or (right and right.failed):
            return self.bit(call)
        if right is not None:
            return self._with_constant(call.function, call.args[0], right, first=False)
        if left is not None:
            return self._with_constant(FLIPPED[call.function], call.args[1], left, first=True)
        return self._of_two(call)

    def _with_constant(
        self, operator: str, node: Node, constant: Folded, *, first: bool
    ) -> Formula:
        if constant.value is None and operator != "<=>":
            # A NULL on the left ends the evaluation; one on the right comes after it.
            return Constant(NULL) if first else self._when_known(node, NULL, NULL)
        if constant.value is None:
            return self._when_known(node, FALSE, TRUE)
        code = order_of(node.type).code(constant.value)
        before, cuts = STEPS[operator](code)
        null = FALSE if operator == "<=>" else NULL
        return self._in_ranges(node, cuts, before, null)

    def _when_known(self, node: Node, known: int, null: int) -> Formula:
        return self._in_ranges(node, (), known, null)

    def _in_ranges(
        self, node: Node, cuts: Iterable[tuple[Code, int]], first: int, null: int
    ) -> Formula:
        """Steps over an expression; a condition's two values make a table of its states."""
        if node.type != t.BOOLEAN:
            return self.steps(node, cuts, first, null)
        states = [first, first]
        for place, state in cuts:
            states = [state if value >= place else old for value, old in enumerate(states)]  # type: ignore[operator]
        return Mapped((*states, null, 3), self.formula(node))

    def membership(self, call: Call) -> Formula:
        """IN a list of constants; a NULL among them turns false into NULL."""
        value, *listed = call.args
        constants = [fold(item) for item in listed]
        if fold(value) is not None or any(c is None or c.failed for c in constants):
            return self.bit(call)
        known = [c.value for c in constants if c is not None and c.value is not None]
        missed = FALSE if len(known) == len(constants) else NULL
        order = order_of(value.type)
        cuts: list[tuple[Code, int]] = []
        for code in sorted({order.code(item) for item in known}):
            cuts += [(code, TRUE), (after(code), missed)]
        return self._in_ranges(value, cuts, missed, NULL)

    def prefix(self, call: Call) -> Formula:
        """LIKE 'abc%', LIKE 'abc' and startswith: a range of strings."""
        found = prefix_of(call)
        if found is None or fold(call.args[0]) is not None:
            return self.bit(call)
        low, high = range_of(*found)
        cuts = [(low, TRUE)] if high is None else [(low, TRUE), (high, FALSE)]
        return self.steps(call.args[0], cuts, FALSE)

    def _of_two(self, call: Call) -> Formula:
        """A comparison of two expressions: equal ones written differently are one bit."""
        operator, (left, right) = call.function, call.args
        sides = subexpression(left), subexpression(right)
        # With sides that can fail, their order decides which of them is evaluated.
        if sides[0].key > sides[1].key and not any(side.can_fail for side in sides):
            operator, left, right = FLIPPED[operator], right, left
        plain = OPPOSITE.get(operator, operator)
        bit = self.bit(Call(plain, (left, right), t.BOOLEAN))
        return bit if plain == operator else Mapped(NOT, bit)


def _state(value: object) -> int:
    return NULL if value is None else TRUE if value else FALSE


def _mapped(table: tuple[int, ...]) -> Callable[[Normalizer, Call], Formula]:
    return lambda normalizer, call: Mapped(table, normalizer.formula(call.args[0]))


Steps = tuple[int, list[tuple[Code, int]]]

# The state below the first cut, and the state from each cut on.
STEPS: dict[str, Callable[[Code], Steps]] = {
    "=": lambda code: (FALSE, [(code, TRUE), (after(code), FALSE)]),
    "<=>": lambda code: (FALSE, [(code, TRUE), (after(code), FALSE)]),
    "<>": lambda code: (TRUE, [(code, FALSE), (after(code), TRUE)]),
    "<": lambda code: (TRUE, [(code, FALSE)]),
    "<=": lambda code: (TRUE, [(after(code), FALSE)]),
    ">": lambda code: (FALSE, [(after(code), TRUE)]),
    ">=": lambda code: (FALSE, [(code, TRUE)]),
}

HANDLERS: dict[str, Callable[[Normalizer, Call], Formula]] = {
    "and": Normalizer.connective,
    "or": Normalizer.connective,
    "not": _mapped(NOT),
    "is true": _mapped(IS_TRUE),
    "is false": _mapped(IS_FALSE),
    "is null": Normalizer.is_null,
    "isnan": Normalizer.is_nan,
    "case": Normalizer.case,
    "coalesce": Normalizer.coalesce,
    "in": Normalizer.membership,
    "like": Normalizer.prefix,
    "startswith": Normalizer.prefix,
    **dict.fromkeys(FLIPPED, Normalizer.comparison),
}


DIGITS = Context(prec=2 * t.MAX_DIGITS)


@dataclass(frozen=True)
class Folded:
    """The value of a constant expression, as in `Literal.value`; or that it fails."""

    value: object
    failed: bool = False


def fold(node: Node) -> Folded | None:
    """The value of an expression that reads no column, None for any other.

    >>> from muntin.expressions import bind_text
    >>> fold(bind_text("2 * 1000", pa.schema([])).root).value
    2000
    """
    if isinstance(node, Literal):
        return Folded(node.value)
    if isinstance(node, Column) or any(isinstance(part, Column) for part in walk(node)):
        return None
    [result] = Evaluator([subexpression(node)])(pa.table({"": [None]}))
    if result.errors is not None:
        return Folded(None, failed=True)
    return Folded(_plain(result.values))


def _plain(values: pa.Array) -> object:
    kind = values.type
    if values.null_count:
        return None
    if kind == t.DATE:
        return values.view(pa.int32())[0].as_py()
    if t.is_time(kind):
        return values.view(pa.int64())[0].as_py()
    value = values[0].as_py()
    return int(DIGITS.scaleb(value, kind.scale)) if t.is_decimal(kind) else value


EXACT = 2.0**53

PullBack = Callable[[Code], Code]


def unconverted(node: Node) -> tuple[Node, tuple[PullBack, ...]]:
    """The expression under conversions that keep order, and how a cut moves down through each.

    `CAST(x AS DECIMAL(11,1)) > 1.5` for an integer x is `x > 1`; without this, one column
    compared with constants of several types would be several dimensions.
    """
    moves: list[PullBack] = []
    while isinstance(node, Call) and node.function == "cast":
        move = pull_back(node.args[0].type, node.type)
        if move is None:
            break
        moves.append(move)
        node = node.args[0]
    return node, tuple(moves)


def pull_back(source: pa.DataType, target: pa.DataType) -> PullBack | None:
    """From a cut of `target` to the first `source` code whose conversion lies at it or after it.

    None where the conversion can fail or rounds in ways of its own.

    >>> to_integer = pull_back(pa.int32(), pa.decimal128(11, 1))
    >>> to_integer(15), to_integer(20)
    (2, 2)
    """
    if source == target or (source == t.FLOAT and target == t.DOUBLE):
        return _same
    if t.is_integer(source) and t.is_integer(target):
        return _same if t.INTEGERS.index(source) < t.INTEGERS.index(target) else None
    if t.is_integer(source) and target == t.DOUBLE:
        return lambda cut: _first_integer(cut, source)
    if t.is_decimal(target) and (t.is_integer(source) or t.is_decimal(source)):
        return _decimal(t.as_decimal(source), target)
    return None


def _same(cut: Code) -> Code:
    return cut


def _decimal(source: pa.DataType, target: pa.DataType) -> PullBack | None:
    added = target.scale - source.scale
    if added < 0 or target.precision - target.scale < source.precision - source.scale:
        return None
    unit = 10**added
    return lambda cut: -(-_integer(cut) // unit)


def _first_integer(cut: Code, kind: pa.DataType) -> int:
    """The first integer that converts to a double at the cut or after it."""
    low, high = t.BOUNDS[kind]
    limit = double_of(_integer(cut))
    if not limit <= float(high):
        return high + 1
    if abs(limit) <= EXACT:
        return math.ceil(limit)
    # Large integers round to a double: its order tells where the first one is.
    while low < high:
        middle = (low + high) // 2
        if float(middle) >= limit:
            high = middle
        else:
            low = middle + 1
    return low


def _integer(cut: Code) -> int:
    assert isinstance(cut, int)
    return cut


def prefix_of(call: Call) -> tuple[str, bool] | None:
    """The constant start that a string must have, and whether more may follow it.

    None for patterns with other wildcards.

    >>> from muntin.expressions import bind_text
    >>> import pyarrow as pa
    >>> schema = pa.schema([("s", pa.string())])
    >>> [prefix_of(bind_text(f"s LIKE '{p}'", schema).root) for p in ("ab%", "ab", "a%b")]
    [('ab', True), ('ab', False), None]
    """
    pattern = call.args[1]
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return None
    if call.function == "startswith":
        return pattern.value, True
    from muntin.expressions.functions.patterns import tokens  # noqa: PLC0415  (loads polars)

    escape = call.args[2].value if len(call.args) > 2 else "\\"  # type: ignore[union-attr]
    letters = tokens(pattern.value, str(escape))
    fixed = letters[:-1] if letters and letters[-1] == ("%", True) else letters
    if any(wild for _, wild in fixed):
        return None
    return "".join(letter for letter, _ in fixed), len(fixed) < len(letters)


def range_of(prefix: str, longer: bool) -> tuple[bytes, bytes | None]:
    r"""The first string with a prefix, and the first behind all of them if there is one.

    >>> range_of("ab", True), range_of("ab", False), range_of("", True)
    ((b'ab', b'ac'), (b'ab', b'ab\x00'), (b'', None))
    """
    low = prefix.encode("utf-8", "surrogatepass")
    if not longer:
        return low, low + b"\0"
    # No byte of UTF-8 is 255, so the last one has a next.
    return low, (low[:-1] + bytes([low[-1] + 1]) if low else None)
