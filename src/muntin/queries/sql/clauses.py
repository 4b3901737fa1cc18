"""Nodes of the syntax tree that sqlglot does not have."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp

# More digits than any 64-bit number has; Python refuses to read thousands of them.
MAX_DIGITS = 20


class Extent(exp.Expression):
    """A range, slide or offset as written: ``this`` is an integer or the text of a duration.

    ``rows`` says that it counts rows, as in SLIDE 1 TUPLE.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "rows": False}


class WindowClause(exp.Expression):
    """A window in any spelling.

    ``spelling`` names it for messages, ``measure`` is "time" or "rows", ``align`` says whether
    ends or starts lie on the slide, ``time`` is the identifier of the time column if named.
    ``now`` is a range of one tick, and ``internal`` says that results never end. Questions may say
    when the window ends (``as_of``: a word or a literal), that it be ``aligned`` with what is kept,
    and how wide bounds may be (``within``, in percent). Keeps of rows, and questions about them,
    may count rows by ``partition``, a list of columns.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "spelling": True,
        "measure": True,
        "align": True,
        "range": False,
        "slide": False,
        "offset": False,
        "time": False,
        "now": False,
        "internal": False,
        "as_of": False,
        "aligned": False,
        "within": False,
        "partition": False,
    }


class StreamedNode(exp.Expression):
    """``Istream``, ``Dstream``, ``Rstream`` or ``Wstream`` around a query.

    ``kind`` is the word in lower case, ``this`` the query, and ``window`` what follows Wstream.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True, "window": False}


class CreateQueryNode(exp.Expression):
    """CREATE [OR REPLACE] QUERY ``this`` [WITH (``options``)] AS ``expression``."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "expression": True,
        "replace": False,
        "options": False,
    }


class DropQueryNode(exp.Expression):
    """DROP QUERY ``this``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class CreateKeepNode(exp.Expression):
    """CREATE [OR REPLACE] KEEP ``this`` [``options``] AS ``expression`` [CUT (``cuts``)]."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "expression": True,
        "replace": False,
        "cuts": False,
        "options": False,
    }


class DropKeepNode(exp.Expression):
    """DROP KEEP ``this``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class ColumnNode(exp.Expression):
    """A declared column: the identifier ``this``, of the type ``kind``, which is ``written`` so."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True, "written": True}


class OptionNode(exp.Expression):
    """One option of WITH: the text of its key and of its ``value``, which starts at ``at``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "value": True, "at": True}


class CreateSourceNode(exp.Expression):
    """CREATE STREAM or CREATE TABLE ``this``; ``kind`` is "stream" or "table"."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "kind": True,
        "columns": False,
        "options": True,
    }


class CreateSinkNode(exp.Expression):
    """CREATE SINK ``this`` FOR ``queries``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "queries": False, "options": True}


class InsertNode(exp.Expression):
    """INSERT INTO ``this``, the name of a sink, the query ``expression``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}
