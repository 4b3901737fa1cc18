"""The walk over SQL nodes that types them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Hashable, Iterable
from functools import cache
from typing import Any

import pyarrow as pa
from sqlglot import exp

from muntin.errors import did_you_mean
from muntin.expressions import nested
from muntin.expressions import types as t
from muntin.expressions.binding import forms, grammar, literals
from muntin.expressions.binding.coercion import in_zone
from muntin.expressions.registry import apply, functions
from muntin.expressions.storage import check_readable, spark_type
from muntin.expressions.tree import BindingError, Call, Column, Literal, Node, structure
from muntin.expressions.zones import UTC, Zone

MAX_DEPTH = 100
NEAREST = 5
CASTS = {"tinyint": t.TINYINT, "smallint": t.SMALLINT, "bigint": t.BIGINT}
# Functions that are written in terms of others.
SIZES = ("size", "array_size", "cardinality")
SPELLED_OUT = frozenset(["isnotnull", "date_part", nested.GET, *SIZES, *CASTS])


class Binder:
    """Types expressions over one schema, with local times in one zone.

    Nesting is limited to `MAX_DEPTH`; chains of AND, OR and || count as one level, however long.
    """

    def __init__(self, schema: pa.Schema, zone: Zone = UTC) -> None:
        self.zone = zone
        self._fields: dict[str, list[pa.Field]] = {}
        for field in schema:
            self._fields.setdefault(field.name.lower(), []).append(field)
        self._columns: dict[str, Column] = {}
        self._operands: dict[Hashable, tuple[Node, int]] = {}
        # Columns as compared with numbers of a type, and the type that the number gets.
        self._compared: dict[Hashable, tuple[Node, pa.DataType]] = {}
        self._depth = 0
        self._deepest = 0

    def bind(self, node: exp.Expr) -> Node:
        """The typed expression; errors name the innermost node at fault."""
        node = node.unnest()
        self._depth += 1
        self._deepest = max(self._deepest, self._depth)
        try:
            if self._depth > MAX_DEPTH:
                raise BindingError(
                    f"the expression is nested more than {MAX_DEPTH} levels deep",
                    hint="split it up, or compute a part of it into a column first",
                )
            return self._dispatch(node)
        except BindingError as error:
            error.node = error.node or node
            raise
        finally:
            self._depth -= 1

    def call(self, name: str, *nodes: exp.Expr | Node) -> Node:
        """A registered function applied to SQL nodes or to typed ones."""
        args = [self.bind(n) if isinstance(n, exp.Expr) else n for n in nodes]
        return in_zone(apply(name, args), self.zone)

    def column(self, node: exp.Column) -> Node:
        """The column of that name, regardless of case."""
        known = self._columns.get(node.name) if _is_plain(node) else None
        if known is None:
            known = self._find(node)
            self._columns[node.name] = known
        return known

    def _find(self, node: exp.Column) -> Column:
        field = self._field(node)
        try:
            return Column(field.name, spark_type(field.type))
        except BindingError as error:
            message = f"column {field.name} of type {field.type} cannot be used"
            raise BindingError(message, hint=error.hint) from error

    def _field(self, node: exp.Column) -> pa.Field:
        found = self._fields.get(node.name.lower(), [])
        if isinstance(node.this, exp.Star) or node.args.get("db"):
            raise BindingError(
                f"{node.sql(dialect='spark')} is not a column", hint="name one column"
            )
        if not found:
            known = [field.name for fields in self._fields.values() for field in fields]
            hint = did_you_mean(node.name, known) or _nearest(node.name, known)
            # What stands before a dot may have been meant for the name of a stream.
            other = node.meta.get("qualifier")
            what = "no column, stream or table" if other else "no column"
            raise BindingError(f"{what} {node.name}", hint=other or hint)
        if len(found) > 1:
            names = ", ".join(field.name for field in found)
            raise BindingError(
                f"column {node.name} is ambiguous: {names}",
                hint="names are compared regardless of case; rename one of them",
            )
        check_readable(found[0])
        return found[0]

    def part(self, node: exp.Bracket | exp.Dot) -> Node:
        """A field of a struct or an element of an array, as a value."""
        return nested.value_of(self._step(node), node.sql(dialect="spark"))

    def size(self, node: exp.ArraySize | exp.Anonymous) -> Node:
        """The number of an array's elements."""
        given = node.expressions or [node.this]
        if len(given) != 1 or node.args.get("expression") is not None:
            raise BindingError("size takes one array", hint="write size(x)")
        return nested.size_of(self._whole(given[0]), given[0].sql(dialect="spark"))

    def _whole(self, node: exp.Expr) -> Node:
        """What a part is taken of: a column of any type, or another part."""
        node = node.unnest()
        if isinstance(node, exp.Column):
            field = self._field(node)
            return Column(field.name, field.type)
        if isinstance(node, exp.Bracket | exp.Dot) or _is_get(node):
            return self._step(node)
        raise BindingError(
            f"{node.sql(dialect='spark')} has no parts", hint="columns have fields and elements"
        )

    def _step(self, node: exp.Expr) -> Call:
        arguments = node.expressions
        of, index = (node.this, arguments[:1]) if arguments else (node.this, [node.expression])
        if _is_get(node):
            of, index = arguments[0], arguments[1:]
        whole, shown = self._whole(of), of.sql(dialect="spark")
        if len(arguments) > 2 or len(index) != 1:
            raise BindingError(f"{shown} takes one index", hint=f"write {shown}[0]")
        name = index[0].name if isinstance(index[0], exp.Identifier | exp.Literal) else ""
        is_text = isinstance(index[0], exp.Identifier) or index[0].is_string
        if is_text and not node.args.get("offset"):
            return nested.field_of(whole, name, shown)
        function = nested.GET if _is_get(node) else nested.ITEM
        if node.args.get("offset") == 1:
            function = nested.TRY_ELEMENT_AT if node.args.get("safe") else nested.ELEMENT_AT
        return nested.element_of(function, whole, self.bind(index[0]), shown)

    def _dispatch(self, node: exp.Expr) -> Node:
        kind = type(node)
        if kind in HANDLERS:
            return HANDLERS[kind](self, node)
        if kind in grammar.COMPARISONS:
            return self._comparison(node)
        if kind in grammar.OPERATORS:
            return self.call(grammar.OPERATORS[kind], node.this, node.expression)
        if kind in grammar.CALLS:
            return self._known_call(node)
        raise _refusal(node)

    def _comparison(self, node: exp.Expr) -> Node:
        """A comparison; what it does to a column's type depends on the type of a number only."""
        operator = grammar.OPERATORS[type(node)]
        left, right = node.this, node.expression
        key: Hashable = None
        if _is_number(right) and _is_plain(left) and self._depth < MAX_DEPTH:
            constant = literals.number(right.name)
            key = operator, left.name, constant.type
            known = self._compared.get(key)
            number = None if known is None else _as_type(constant, known[1])
            if known is not None and number is not None:
                self._deepest = max(self._deepest, self._depth + 1)
                return Call(operator, (known[0], number), t.BOOLEAN)
        bound = self.call(operator, self._operand(left), self._operand(right))
        if key is not None and isinstance(bound, Call) and isinstance(bound.args[1], Literal):
            self._compared[key] = bound.args[0], bound.args[1].type
        return bound

    def _operand(self, node: exp.Expr) -> Node:
        """One side of a comparison: many constants are compared with few expressions."""
        inner = node.unnest()
        if isinstance(inner, exp.Column | exp.Literal):
            return self.bind(inner)
        key = structure(inner)
        known = self._operands.get(key)
        # Deeper inside than before, it may be too deep: then binding it says where.
        if known is None or self._depth + known[1] > MAX_DEPTH:
            outer, self._deepest = self._deepest, self._depth
            bound = self.bind(inner)
            known = self._operands[key] = bound, self._deepest - self._depth
            self._deepest = max(self._deepest, outer)
        self._deepest = max(self._deepest, self._depth + known[1])
        return known[0]

    def _known_call(self, node: exp.Expr) -> Node:
        name, keys = grammar.CALLS[type(node)]
        args: list[exp.Expr | Node] = []
        for key in keys:
            given = node.args.get(key)
            args.extend(given if isinstance(given, list) else [given] if given is not None else [])
        extra = [k for k, v in node.args.items() if v and k not in keys]
        if set(extra) - grammar.IGNORED_ARGUMENTS:
            raise BindingError(
                f"this form of {name} is not supported: {node.sql(dialect='spark')}",
                hint="leave the further arguments out",
            )
        return self.call(name, *(_plain(arg) for arg in args))

    def anonymous(self, node: exp.Anonymous) -> Node:
        """A function that the parser has no node for."""
        name = node.name.lower()
        if name == "isnotnull":
            return self.call("not", self.call("is null", *node.expressions))
        if _is_get(node):
            return nested.value_of(self._step(node), node.sql(dialect="spark"))
        if name in SIZES:
            return self.size(node)
        if name == "date_part" and len(node.expressions) == 2:
            return forms.extracted(self, node.expressions[0].name, node.expressions[1])
        if name in CASTS and len(node.expressions) == 1:
            return forms.converted(self, node.expressions[0], CASTS[name])
        if name not in known_names():
            raise unknown_function(name, known_names(), of_values=bool(node.expressions))
        return self.call(grammar.ALIASES.get(name, name), *node.expressions)


def function_error(node: exp.Expr, others: Iterable[str] = ()) -> BindingError | None:
    """Why a function cannot be called, whatever its arguments; None if it can, or is none.

    `others` are names of aggregates, which may have been meant.

    >>> import sqlglot
    >>> print(function_error(sqlglot.parse_one("summ(x)", dialect="spark"), ["sum"]))
    no function summ
    Hint: did you mean sum?
    >>> print(function_error(sqlglot.parse_one("unix_timestamp(ts)", dialect="spark")))
    unix_timestamp is not allowed in an expression
    Hint: write unix_seconds(ts): the seconds of a time since 1970
    >>> print(function_error(sqlglot.parse_one("unix_timestamp()", dialect="spark")))
    unix_timestamp is not allowed in an expression
    Hint: its value changes from call to call, so a replay would give other results
    """
    kind = type(node)
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        known = name in SPELLED_OUT or name in known_names()
    elif kind in HANDLERS or kind in grammar.OPERATORS or kind in grammar.CALLS:
        return None
    else:
        name = node.sql(dialect="spark").partition("(")[0] if isinstance(node, exp.Func) else ""
        known = not name.isidentifier()
    if known:
        return None
    return unknown_function(name, [*known_names(), *others], of_values=_has_arguments(node))


def _nearest(name: str, known: list[str]) -> str:
    """The few names that are most like one, of many that are little like it."""
    if not known:
        return "there are no columns here"
    lowered = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), list(lowered), n=NEAREST, cutoff=0)
    return f"the nearest of {len(known)} names are {', '.join(lowered[one] for one in close)}"


def known_names() -> list[str]:
    """Functions that a user may call, by name."""
    return list(_known_names())


@cache
def _known_names() -> tuple[str, ...]:
    words = [name for name in functions() if name.replace("_", "").isalnum()]
    return tuple(sorted({*words, *grammar.ALIASES} - grammar.FORMS))


def _plain(arg: exp.Expr | Node) -> exp.Expr | Node:
    """Units as string constants; and the dates that the parser wraps arguments in, unwrapped."""
    if isinstance(arg, exp.Var):
        return literals.string(arg.name.lower())
    if isinstance(arg, exp.TsOrDsToDate) and not arg.args.get("safe"):
        wrapped: exp.Expr = arg.this
        return wrapped
    return arg


def _refusal(node: exp.Expr) -> BindingError:
    text = node.sql(dialect="spark")
    if isinstance(node, exp.AggFunc):
        return BindingError(
            f"the aggregate {text} cannot stand inside this expression",
            hint="aggregates belong in SELECT and HAVING",
        )
    if isinstance(node, exp.Query | exp.Subquery | exp.Exists):
        return BindingError("subqueries are not supported", hint="write the values out")
    if isinstance(node, exp.Window):
        return BindingError(
            "OVER (...) is not supported", hint="the window is given after FROM, once per query"
        )
    if isinstance(node, exp.Func):
        name = text.partition("(")[0]
        return unknown_function(name, known_names(), of_values=_has_arguments(node))
    return BindingError(
        f"{text} is not supported in an expression", hint="use operators, CASE and known functions"
    )


def _is_number(node: exp.Expr) -> bool:
    """Whether a node is a number that has an exact value."""
    return type(node) is exp.Literal and not node.is_string and "e" not in node.name.lower()


def _is_plain(node: exp.Expr) -> bool:
    """Whether a node is a column by its name, whatever stands before it."""
    is_column = type(node) is exp.Column and isinstance(node.this, exp.Identifier)
    return is_column and not node.args.get("db")


def _as_type(constant: Literal, kind: pa.DataType) -> Literal | None:
    return constant if constant.type == kind else literals.convert(constant, kind)


def _is_get(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == nested.GET


def _literal(binder: Binder, node: exp.Expr) -> Literal:
    return literals.string(node.name) if node.is_string else literals.number(node.name)


HANDLERS: dict[type[exp.Expr], Callable[[Binder, Any], Node]] = {
    exp.Column: Binder.column,
    exp.Anonymous: Binder.anonymous,
    exp.ArraySize: Binder.size,
    exp.Bracket: Binder.part,
    exp.Dot: Binder.part,
    exp.Literal: _literal,
    **forms.HANDLERS,
}


CHANGES = "its value changes from call to call, so a replay would give other results"
OUTSIDE = "it reaches outside the row"
FROM_TEXT = "formats that are given as text are not evaluated here"

REASONS = {
    name: reason
    for reason, names in {
        CHANGES: "rand randn random randstr uniform uuid shuffle now current_timestamp "
        "current_date current_time curdate localtimestamp unix_timestamp "
        "monotonically_increasing_id spark_partition_id current_timezone",
        OUTSIDE: "reflect java_method try_reflect input_file_name input_file_block_start "
        "input_file_block_length current_user session_user user current_database current_catalog "
        "current_schema version assert_true raise_error",
        FROM_TEXT: "date_format to_number to_char from_unixtime",
    }.items()
    for name in names.split()
}


# What functions are called elsewhere that are another one if they have arguments.
OF_VALUES = {"unix_timestamp": "write unix_seconds(ts): the seconds of a time since 1970"}


def _has_arguments(node: exp.Expr) -> bool:
    # Where an argument is left out, the parser may have put the time of the call.
    first = node.this
    given = isinstance(first, exp.Expr) and not isinstance(first, exp.CurrentTimestamp)
    return bool(node.expressions) or given


def unknown_function(name: str, known: list[str], *, of_values: bool = False) -> BindingError:
    """The error for a function that is not on the allow-list.

    ``of_values`` says whether it is called with arguments.

    >>> print(unknown_function("rand", []))
    rand is not allowed in an expression
    Hint: its value changes from call to call, so a replay would give other results
    >>> print(unknown_function("lenght", ["length", "lower"]))
    no function lenght
    Hint: did you mean length?
    """
    name = name.lower()
    if of_values and name in OF_VALUES:
        return BindingError(f"{name} is not allowed in an expression", hint=OF_VALUES[name])
    if name in REASONS:
        return BindingError(f"{name} is not allowed in an expression", hint=REASONS[name])
    hint = did_you_mean(name, known) if difflib.get_close_matches(name, known, n=1) else None
    return BindingError(
        f"no function {name}",
        hint=hint
        or "compute it into a column of the input first, or write it with known functions",
    )
