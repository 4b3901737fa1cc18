"""From the text of a foreign file to its statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from sqlglot import exp
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from muntin.pipelines.importers.grammar import FlinkTokens, ForeignGrammar
from muntin.pipelines.importers.intervals import interval_of
from muntin.pipelines.importers.statements import (
    ForeignNode,
    ForeignQuery,
    ForeignStatement,
    ForeignTable,
    Notes,
)
from muntin.queries.reader import StatementReader
from muntin.queries.secrets import masked
from muntin.queries.source import Lines
from muntin.queries.sql.depth import deep_stack
from muntin.queries.sql.dialect import Muntin, strip_comments
from muntin.queries.sql.refusals import explain_token_error

Dialect: TypeAlias = Literal["spark", "flink"]
_FLINK_WORDS = {"WATERMARK", "DESCRIPTOR", "HOP", "TUMBLE", "CUMULATE", "METADATA", "CONNECTOR"}
_SPARK_WORDS = {"USING", "TBLPROPERTIES", "OPTIONS", "SESSION_WINDOW", "WINDOW"}


@dataclass
class Entry:
    """One statement of the file: what it says, and what becomes of it.

    Attributes:
        foreign: What it says; None if it could not be read.
        original: Its text.
        comments: Those that stand before it.
        texts: The statements it becomes.
        settled: Whether nothing stands for it, and that is as it should be.
    """

    foreign: ForeignStatement | None
    original: str
    comments: list[str]
    texts: list[str] = field(default_factory=list)
    settled: bool = False


def tokens_of(text: str, dialect: Dialect) -> tuple[list[Token], TokenError | None]:
    """The words of a text, up to where it cannot be cut into words."""
    reader = (FlinkTokens() if dialect == "flink" else Muntin()).tokenizer()
    try:
        return reader.tokenize(text), None
    except TokenError as error:
        return reader.tokens, error


def detect(text: str) -> Dialect:
    """Whose SQL a text is, by words that only one of the two has; Spark's if there are none.

    >>> detect("SELECT count(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTES))")
    'flink'
    >>> detect("SELECT window.start, count(*) FROM t GROUP BY window(ts, '5 minutes')")
    'spark'
    """
    words = [token.text.upper() for token in tokens_of(text, "spark")[0]]
    flink = sum(word in _FLINK_WORDS for word in words)
    return "flink" if flink > sum(word in _SPARK_WORDS for word in words) else "spark"


def read_entries(text: str, dialect: Dialect) -> tuple[list[Entry], Notes]:
    """The statements of a text, and notes of those that cannot be read.

    Secrets are starred out of what is shown, comments among it.
    """
    tokens, failed = tokens_of(text, dialect)
    shown = masked(text)
    notes = Notes(Lines(shown))
    entries: list[Entry] = []
    grammar = ForeignGrammar(dialect=FlinkTokens() if dialect == "flink" else Muntin())
    chunks = _split(tokens)
    lines = Lines(text)
    with deep_stack():
        for number, chunk in enumerate(chunks):
            notes.statement = number
            broken = failed is not None and number == len(chunks) - 1
            comments = [line for part in chunk[0].comments for line in masked(part).split("\n")]
            _note_hints(chunk, notes)
            foreign = None if broken else _read(lines, grammar, chunk, notes)
            end = len(text) if broken else chunk[-1].end + 1
            original = shown[chunk[0].start : end].rstrip()
            entries.append(Entry(foreign, original, [line.strip() for line in comments]))
    if failed is not None:
        notes.statement = len(entries) - 1
        notes.take(explain_token_error(text, tokens))
    return entries, notes


def _read(
    lines: Lines, grammar: ForeignGrammar, chunk: list[Token], notes: Notes
) -> ForeignStatement | None:
    reader = StatementReader(lines, grammar, strip_comments(chunk))
    node: exp.Expr | None = reader.parse()
    for problem in reader.report.problems:
        notes.take(problem)
    if not isinstance(node, ForeignNode):
        return None
    statement: ForeignStatement = node.args["this"]
    return statement


def _note_hints(chunk: list[Token], notes: Notes) -> None:
    """Hints to an optimizer, or with options of a table, look like comments here."""
    for token in chunk:
        if any(comment.startswith("+") for comment in token.comments):
            hint = "write options into CREATE TABLE before the import"
            notes.add(token.start, "a hint /*+ ... */ is left out", hint)


def _split(tokens: list[Token]) -> list[list[Token]]:
    chunks: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            chunks.append([])
        else:
            chunks[-1].append(token)
    return [chunk for chunk in chunks if chunk]


Role: TypeAlias = Literal["stream", "table", "sink"]
_SINKS = ("print", "blackhole")


def roles(statements: Sequence[ForeignStatement]) -> dict[str, Role]:
    """The role of every table that is declared or read, by its name in lower case.

    Views are written out before. What is inserted into is a sink; what a query reads first, or
    has a watermark, a stream; and what is only joined a table.
    """
    found: dict[str, Role] = {}
    for statement in statements:
        if isinstance(statement, ForeignTable):
            name = statement.name.lower()
            found.setdefault(name, _declared(statement))
    for statement in statements:
        if isinstance(statement, ForeignTable) and statement.select is not None:
            found[statement.name.lower()] = "sink"
        elif isinstance(statement, ForeignQuery) and statement.sink is not None:
            found[statement.sink.name.lower()] = "sink"
    tables = {one.name.lower(): one for one in statements if isinstance(one, ForeignTable)}
    for statement in statements:
        if isinstance(statement, ForeignTable | ForeignQuery) and statement.select is not None:
            _tables_read(statement.select, found)
            interval = interval_of(statement.select, tables)
            if interval is not None and interval.span is not None:
                for table in statement.select.find_all(exp.Table):
                    if found.get(table.name.lower()) != "sink":
                        found[table.name.lower()] = "stream"
    return found


def _declared(table: ForeignTable) -> Role:
    connector = next((one.value for one in table.options if one.key.lower() == "connector"), "")
    if connector.lower() in _SINKS:
        return "sink"
    kafka = "kafka" in (connector.lower(), (table.using or "").lower())
    return "stream" if table.watermarks or kafka else "table"


def _tables_read(select: exp.Expr, found: dict[str, Role]) -> None:
    source = select.args.get("from_")
    table = None if source is None else source.this
    if isinstance(table, exp.Table) and found.get(table.name.lower()) != "sink":
        found[table.name.lower()] = "stream"
    for join in select.args.get("joins") or ():
        name = join.this.name.lower() if isinstance(join.this, exp.Table) else ""
        if name and join.this.args.get("version") is not None and found.get(name) != "sink":
            found[name] = "table"
        elif name:
            found.setdefault(name, "table")
