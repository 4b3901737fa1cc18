"""One text for each meaning: spelling, quoting and needless parentheses taken out."""

from __future__ import annotations

import threading

from sqlglot import exp
from sqlglot.generator import Generator

from muntin.aggregates import names
from muntin.queries.sql.depth import balance, parts
from muntin.queries.sql.dialect import Muntin, is_reserved

_ATOMS = (exp.Column, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.Func, exp.Case)
# Aggregates whose second argument says whether NULL is skipped.
_FLAGGED = {"any_value", "first", "first_value", "last", "last_value"}
_LISTED = frozenset(
    ["array_agg", "collect_list", "collect_set", "group_concat", "list", "listagg", "string_agg"]
)
_ENCLOSING = (exp.Anonymous, exp.Paren, exp.Where)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_SUM, _PRODUCT = 4, 5
_PRECEDENCE: dict[type[exp.Expr], int] = {
    exp.Or: 1,
    exp.And: 2,
    **dict.fromkeys(_COMPARISONS, 3),
    **dict.fromkeys((exp.Add, exp.Sub), _SUM),
    **dict.fromkeys((exp.Mul, exp.Div, exp.Mod), _PRODUCT),
}


def quote(name: str) -> str:
    """A name as SQL reads it back, in backquotes only where it needs them.

    >>> quote("symbol"), quote("range"), quote("my column")
    ('symbol', '`range`', '`my column`')
    """
    if is_plain(name):
        return name
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def dotted(name: str) -> str:
    """A name of parts with dots between them, as SQL reads it back.

    >>> dotted("db.index")
    'db.`index`'
    """
    return ".".join(quote(part) for part in name.split("."))


def is_plain(name: str) -> bool:
    """Whether a name can stand in SQL without quotes."""
    return name.isascii() and name.isidentifier() and not is_reserved(name)


def take(root: exp.Expr) -> exp.Expr:
    """What a node holds, free to stand elsewhere."""
    node: exp.Expr = root.this
    return node.pop()


def normalize(node: exp.Expr) -> exp.Expr:
    """The expression with identifiers quoted only where needed, and no needless parentheses.

    Also flattens long chains of AND and OR, and gives IGNORE NULLS one spelling. Changes the
    node in place, and returns what stands in its place.
    """
    root = exp.Paren(this=node)
    for part in parts(root):
        if isinstance(part, exp.Identifier):
            quoted = not is_plain(part.name)
            if part.args.get("quoted") is not quoted:
                part.set("quoted", quoted)
        elif isinstance(part, exp.Anonymous):
            _spell_nulls(part)
        elif isinstance(part, exp.Paren) and part is not root and _is_needless(part):
            part.replace(part.this.pop())
    return take(balance(root))


def _spell_nulls(call: exp.Anonymous) -> None:
    """Writes first(x, true) and first(x IGNORE NULLS) as first(x) IGNORE NULLS.

    Lists leave NULL out by themselves, so that it is RESPECT NULLS that says something there.
    """
    wrapper = call.parent if isinstance(call.parent, exp.Filter) else call
    lists = call.name.lower() in _LISTED
    if isinstance(wrapper.parent, exp.RespectNulls) and not lists:
        wrapper.parent.replace(wrapper.pop())
    if isinstance(wrapper.parent, exp.IgnoreNulls) and lists:
        wrapper.parent.replace(wrapper.pop())
    ignore = False
    for arg in call.expressions:
        # What stands inside another function is said of an aggregate there.
        is_said = isinstance(arg, (exp.IgnoreNulls, exp.RespectNulls))
        if is_said and call.name.lower() in names():
            ignore = isinstance(arg, exp.IgnoreNulls) is not lists
            arg.replace(arg.this.pop())
    flag = call.expressions[-1] if len(call.expressions) == 2 else None
    if call.name.lower() in _FLAGGED and isinstance(flag, exp.Boolean):
        ignore = ignore or flag.this
        flag.pop()
    if call.name.lower() == "mode" and isinstance(flag, exp.Boolean):
        # Spark's word for the least of equally frequent values, which is what comes anyway.
        flag.pop()
    if ignore and not isinstance(wrapper.parent, (exp.IgnoreNulls, exp.RespectNulls)):
        outer = exp.RespectNulls() if lists else exp.IgnoreNulls()
        wrapper.replace(outer)
        outer.set("this", wrapper)


def _is_needless(paren: exp.Paren) -> bool:
    if isinstance(paren.this, exp.Query):
        return False
    # sqlglot counts AND, OR and some operators among its functions.
    is_atom = isinstance(paren.this, _ATOMS) and not isinstance(paren.this, exp.Binary)
    return is_atom or isinstance(paren.parent, _ENCLOSING) or _binds_tighter(paren)


def _binds_tighter(paren: exp.Paren) -> bool:
    inner = _PRECEDENCE.get(type(paren.this))
    outer = _PRECEDENCE.get(type(paren.parent)) if paren.parent is not None else None
    if inner is None or outer is None:
        return False
    # Arithmetic groups from the left: (a - b) - c needs no parentheses, a - (b - c) does.
    return inner > outer or (inner == outer >= _SUM and paren.arg_key == "this")


class _Generators(threading.local):
    """A generator for each thread: it takes longer to make than to use, and keeps notes."""

    def __init__(self) -> None:
        self.generator: Generator = Muntin().generator(normalize_functions="lower", comments=False)


_generators = _Generators()


def canonical_text(node: exp.Expr) -> str:
    """The expression as SQL text, the same for every spelling that means the same."""
    return _generators.generator.generate(node)


def plain_text(node: exp.Expr) -> str:
    """The expression as people name it: its canonical text without backquotes and qualifiers.

    >>> from muntin.queries import parse_expression
    >>> plain_text(parse_expression("SUM( `range` )"))
    'sum(range)'
    """
    bare = node.copy()
    for column in bare.find_all(exp.Column):
        column.set("table", None)
    for identifier in bare.find_all(exp.Identifier):
        identifier.set("quoted", False)
    return canonical_text(bare)


def default_name(node: exp.Expr) -> str:
    """What a column of results is called that has no name: as a column or field, or its text.

    >>> from muntin.queries import parse_expression
    >>> default_name(parse_expression("l['a']")), default_name(parse_expression("l['a'] + 1"))
    ('a', "l['a'] + 1")
    """
    if isinstance(node, exp.Column):
        return node.name
    last = node.expressions[-1] if isinstance(node, exp.Bracket) and node.expressions else None
    return last.name if last is not None and last.is_string else plain_text(node)


def fold(node: exp.Expr) -> exp.Expr:
    """A copy in which letter case of names, quoting and parentheses make no difference.

    Two expressions mean the same column or computation when their folds are equal.
    """
    root = exp.Paren(this=node.copy())
    for part in parts(root):
        if isinstance(part, exp.Identifier):
            part.set("this", part.name.lower())
            part.set("quoted", False)
        elif isinstance(part, exp.Anonymous):
            part.set("this", part.name.lower())
        elif isinstance(part, exp.Literal) and part.is_string:
            # A field of a struct is found in any letter case.
            if isinstance(part.parent, exp.Bracket):
                part.set("this", part.name.lower())
        elif isinstance(part, exp.Paren) and part is not root:
            part.replace(part.this.pop())
    return take(root)
