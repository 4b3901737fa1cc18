"""The grammar: sqlglot's parser of Spark's SQL, taught windows, joins and statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.parser import SENTINEL_NONE
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from muntin.expressions.binding.grammar import ExpressionParser
from muntin.queries.source import shown
from muntin.queries.sql.clauses import (
    CreateQueryNode,
    DropQueryNode,
    OptionNode,
    StreamedNode,
    WindowClause,
)
from muntin.queries.sql.joins import JoinGrammar
from muntin.queries.sql.windows import WindowGrammar

# sqlglot's token kinds are a closed set: EMIT EMPTY takes one that Spark's SQL never produces.
EMIT_EMPTY = TokenType.PREWHERE
SOURCE_HINT = "write one SELECT over the stream itself"
_OPEN = TokenType.L_PAREN
_NULLS = (["IGNORE", "NULLS"], ["RESPECT", "NULLS"])
_AFTER_NAME = (TokenType.R_PAREN, TokenType.COMMA)
STATEMENT_HINT = "a statement starts with SELECT, CREATE QUERY or DROP QUERY"
_TRUE_OR_FALSE = ("restore", "bounds", "approximate")
_WHOLE_NUMBERS = ("cap_values", "cap_bytes")
QUERY_OPTIONS = (
    "technique", "prefer", "output", "restore", "approximate", "skew", "bounds", "on_cap",
    "cap_values", "cap_bytes",
)  # fmt: skip
QUERY_OPTION_HINT = (
    "write WITH (technique = 'daba'), WITH (prefer = 'latency'), WITH (output = 'changes')"
    ", WITH (restore = true), WITH (approximate = true), WITH (skew = 'replicate')"
    ", WITH (bounds = true), WITH (on_cap = 'fail')"
    " or WITH (cap_values = 1000)"
)
_TRUTHS = (TokenType.TRUE, TokenType.FALSE)
FILE_KINDS = ("STREAM", "TABLE", "SINK")
KEEP_HINT = "pass it as keeps=, or to keep() of the stream or run"
FILE_ONLY_HINT = "run a file that has it with muntin run; in Python, pass frames and sinks instead"


def reserved(word: str) -> tuple[str, str]:
    """What to say, and what to write, where a word of SQL stands for a name."""
    return f"{shown(word)} is a SQL keyword", f"if it is a name, write `{shown(word)}`"


class RefusedError(ParseError):
    """A text that the grammar does not accept, at a token or after the last one."""

    def __init__(
        self, reason: str, hint: str | None = None, token: Token | None = None, after: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.token = token
        self.after = after


# Every aggregate of any system that sqlglot knows; most are not Muntin's, but none is a scalar.
AGGREGATE_NAMES = frozenset(
    {
        name
        for function in exp.ALL_FUNCTIONS
        if issubclass(function, exp.AggFunc)
        for name in function.sql_names()
    }
    | {
        name
        for name, builder in SparkParser.FUNCTIONS.items()
        if isinstance(kind := getattr(builder, "__self__", None), type)
        and issubclass(kind, exp.AggFunc)
    }
    | {"APPROX_PERCENTILE", "COLLECT_LIST", "LISTAGG", "PERCENTILE", "PERCENTILE_APPROX"}
    | {"LIST", "STRING_AGG", "TRY_AVG", "TRY_SUM"}
)


class Grammar(JoinGrammar, WindowGrammar, ExpressionParser):
    """Reads one statement at a time.

    Aggregates are read as calls by name, not as sqlglot's own classes: a registered aggregate
    then looks like a built-in one, and keeps the name it was called by.
    """

    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {
        name: builder
        for name, builder in SparkParser.FUNCTIONS.items()
        if name not in AGGREGATE_NAMES
    }
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        name: parser
        for name, parser in SparkParser.FUNCTION_PARSERS.items()
        if name not in AGGREGATE_NAMES
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        name: SparkParser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("CASE", "IF")
    }
    QUERY_MODIFIER_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {
        **SparkParser.QUERY_MODIFIER_PARSERS,
        EMIT_EMPTY: lambda self: ("emit_empty", self._parse_emit_empty()),
    }
    QUERY_MODIFIER_TOKENS: ClassVar[set[TokenType]] = set(QUERY_MODIFIER_PARSERS)
    TABLE_TERMINATORS: ClassVar[frozenset[Any]] = SparkParser.TABLE_TERMINATORS | {EMIT_EMPTY}
    CREATE_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        "QUERY": lambda self, replace: self._parse_create_query(replace),
    }

    # What a text may start with, for messages.
    STATEMENT_HINT: ClassVar[str] = STATEMENT_HINT

    def statement(self, tokens: list[Token], text: str) -> exp.Expr:
        """Reads the tokens of one statement, which holds no semicolon."""
        self._start(tokens, text)
        if self._match(TokenType.CREATE):
            node = self._parse_create_statement()
        elif self._match(TokenType.DROP):
            node = self._parse_drop_statement()
        else:
            node = self._parse_other_statement()
        return self._finish(node)

    def condition(self, tokens: list[Token], text: str) -> exp.Expr:
        """Reads the tokens of one expression."""
        self._start(tokens, text)
        node = self._parse_disjunction()
        if node is None:
            self.refuse("expected an expression", "write an expression such as price * vol")
        return self._finish(node)

    def refuse(self, reason: str, hint: str | None = None, token: Token | None = None) -> NoReturn:
        """Refuses the text at a token, by default the one that is next."""
        if token is None and not self._curr:
            raise RefusedError(reason, hint, self._prev or None, after=True)
        raise RefusedError(reason, hint, token or self._curr)

    def raise_error(self, message: str, token: Token = SENTINEL_NONE) -> NoReturn:
        """Where sqlglot's own grammar refuses a text."""
        self.refuse(message, None, token or None)

    def _start(self, tokens: list[Token], text: str) -> None:
        self.reset()
        self.sql = text
        self._chunks = [tokens]
        self._advance_chunk()

    def _finish(self, node: exp.Expr) -> exp.Expr:
        self._check_emit()
        if self._curr:
            self.refuse("Invalid expression / Unexpected token")
        return node

    def _parse_create_statement(self) -> exp.Expr:
        replace = self._match_pair(TokenType.OR, TokenType.REPLACE)
        kind = shown(self._curr.text.upper())
        parser = self.CREATE_PARSERS.get(kind)
        if parser is None and kind == "KEEP":
            self.refuse("CREATE KEEP is not allowed among queries", KEEP_HINT)
        if parser is None and kind in FILE_KINDS:
            self.refuse(f"CREATE {kind} is not allowed among queries", FILE_ONLY_HINT)
        if parser is None:
            self.refuse(f"CREATE {kind} is not a statement of Muntin", self.STATEMENT_HINT)
        self._advance()
        return parser(self, replace)

    def _parse_other_statement(self) -> exp.Expr:
        """A SELECT, or what takes its place."""
        if self._curr.token_type == TokenType.INSERT:
            self.refuse("INSERT INTO is not allowed among queries", FILE_ONLY_HINT)
        return self._parse_query()

    def _parse_create_query(self, replace: bool) -> exp.Expr:
        name = self._parse_query_name("CREATE QUERY name AS SELECT ...")
        options = self._parse_query_options()
        if not self._match(TokenType.ALIAS):
            self.refuse("expected AS after the name", "write CREATE QUERY name AS SELECT ...")
        query = self._parse_query()
        options += self._parse_query_options()
        return CreateQueryNode(this=name, expression=query, replace=replace, options=options)

    def _parse_query_options(self) -> list[exp.Expr]:
        """WITH and its options, before AS or behind the query."""
        if not self._match(TokenType.WITH):
            return []
        if not self._match(TokenType.L_PAREN):
            self.refuse("expected ( after WITH", QUERY_OPTION_HINT)
        options = [self._parse_query_option()]
        while self._match(TokenType.COMMA):
            options.append(self._parse_query_option())
        if not self._match(TokenType.R_PAREN):
            self.refuse("expected , or ) after an option", QUERY_OPTION_HINT)
        return options

    def _parse_query_option(self) -> exp.Expr:
        key = self._curr
        if key.text.lower() not in QUERY_OPTIONS:
            known = f"{', '.join(QUERY_OPTIONS[:-1])} or {QUERY_OPTIONS[-1]}"
            self.refuse(f"expected {known}", QUERY_OPTION_HINT)
        self._advance()
        if not self._match(TokenType.EQ):
            self.refuse(f"expected = after {shown(key.text)}", QUERY_OPTION_HINT)
        value = self._curr
        name = key.text.lower()
        if name in _TRUE_OR_FALSE and value.token_type not in _TRUTHS:
            self.refuse("expected true or false", QUERY_OPTION_HINT)
        if name in _WHOLE_NUMBERS and not value.text.isdecimal():
            self.refuse("expected a whole number", QUERY_OPTION_HINT)
        others = (*_TRUE_OR_FALSE, *_WHOLE_NUMBERS)
        if name not in others and value.token_type != TokenType.STRING:
            self.refuse("expected a string", QUERY_OPTION_HINT)
        self._advance()
        option = OptionNode(this=key.text.lower(), value=value.text, at=value.start)
        return option.update_positions(key)

    def _parse_table_hints(self) -> list[exp.Expr] | None:
        """Hints of other systems; but the options of a query may follow its stream."""
        following = self._tokens[self._index + 2 : self._index + 3]
        if following and following[0].text.lower() in QUERY_OPTIONS:
            return None
        return super()._parse_table_hints()

    def _parse_drop_statement(self) -> exp.Expr:
        if not self._match_texts(("QUERY",)):
            kind = shown(self._curr.text.upper())
            if kind == "KEEP":
                self.refuse("DROP KEEP is not allowed among queries", "call drop_keep(name)")
            self.refuse(f"DROP {kind} is not a statement of Muntin", self.STATEMENT_HINT)
        return DropQueryNode(this=self._parse_query_name("DROP QUERY name"))

    def _parse_query_name(self, example: str, what: str = "query") -> exp.Expr:
        token = self._curr
        # Any word may be a name: CREATE QUERY select AS ... reads as well as with backquotes.
        clause = token.token_type in (TokenType.ALIAS, TokenType.SELECT)
        named = self._next.token_type in (TokenType.ALIAS, TokenType.SENTINEL)
        if token.token_type == TokenType.SENTINEL or (clause and not named):
            self.refuse(f"expected the name of a {what}", f"write {example}")
        if token.token_type == TokenType.STRING:
            self.refuse(f"a string is not a name for a {what}", f"write {example}, without quotes")
        self._advance()
        if self._match(TokenType.DOT, advance=False) or self._match(TokenType.DASH, advance=False):
            self.refuse(
                f"a {what}'s name has ASCII letters, digits and _ only",
                "write a name such as high_volume",
            )
        return exp.Identifier(this=token.text, quoted=True).update_positions(token)

    def _parse_select(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        """A SELECT; one of nothing is a name that needs quotes."""
        if self._curr.token_type == TokenType.SELECT and self._next.token_type in _AFTER_NAME:
            self.refuse(*reserved(self._curr.text))
        return super()._parse_select(*args, **kwargs)

    def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
        """What SELECT lists; Istream(a, b) is one item that holds the list."""
        if not self._at_streamed():
            return super()._parse_projections()
        token = self._curr
        (items, rest), kind, window = self._parse_streamed(super()._parse_projections)
        if self._match(TokenType.COMMA, advance=False):
            hint = "put everything that is selected into its parentheses"
            self.refuse(f"a column beside {shown(token.text)}", hint)
        streamed = StreamedNode(this=exp.Tuple(expressions=items), kind=kind, window=window)
        return [streamed.update_positions(token)], rest

    def _parse_query(self) -> exp.Expr:
        token = self._curr
        if self._at_streamed():
            query, kind, window = self._parse_streamed(self._parse_query)
            return StreamedNode(this=query, kind=kind, window=window).update_positions(token)
        node = self._parse_select(nested=True)
        if node is None:
            self.refuse("Invalid expression / Unexpected token", None, token or None)
        query = self._parse_query_modifiers(self._parse_set_operations(node))
        assert query is not None
        return query.update_positions(token)

    def _parse_emit_empty(self) -> exp.Expr:
        token = self._curr
        self._advance()
        return exp.Boolean(this=True).update_positions(token)

    def _check_emit(self) -> None:
        if self._curr.token_type == TokenType.VAR and self._curr.text.upper() == "EMIT":
            hint = "write EMIT EMPTY at the end, or EMIT UNMATCHED after ON of an outer join"
            self.refuse("expected EMPTY after EMIT", hint)

    def _parse_table_alias(self, *args: Any, **kwargs: Any) -> exp.TableAlias | None:
        self._check_emit()
        return super()._parse_table_alias(*args, **kwargs)

    def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> exp.Expr | None:
        """What may follow a function: FILTER, which sqlglot also takes without WHERE."""
        following = self._tokens[self._index + 2 : self._index + 3]
        opens = self._curr.token_type == TokenType.FILTER and self._next.token_type == _OPEN
        if opens and following and following[0].token_type != TokenType.WHERE:
            hint = "write FILTER (WHERE x > 1)"
            self.refuse("expected WHERE in FILTER", hint, following[0])
        if self._nulls_before_filter():
            wrapper = self._parse_respect_or_ignore_nulls(exp.Placeholder())
            assert wrapper is not None
            wrapper.set("this", self._parse_window(this, alias))
            return wrapper
        return super()._parse_window(this, alias)

    def _nulls_before_filter(self) -> bool:
        """Whether IGNORE NULLS or RESPECT NULLS is next, and a FILTER behind it."""
        words = self._tokens[self._index : self._index + 3]
        said = [word.text.upper() for word in words[:2]]
        return said in _NULLS and len(words) > 2 and words[2].token_type == TokenType.FILTER

    def _parse_table(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        call = self._parse_window_table()
        if call is not None:
            return call
        table = super()._parse_table(*args, **kwargs)
        if table is not None and self._match(TokenType.L_BRACKET, advance=False):
            if not isinstance(table, exp.Table):
                self.refuse("only the name of a stream has a window", SOURCE_HINT)
            self._set_window(table)
        return table

    def _parse_table_parts(self, *args: Any, **kwargs: Any) -> exp.Table | exp.Dot | None:
        table = super()._parse_table_parts(*args, **kwargs)
        if isinstance(table, exp.Table) and self._match(TokenType.L_BRACKET, advance=False):
            self._set_window(table)
        return table

    def _set_window(self, table: exp.Table) -> None:
        if table.args.get("window") is not None:
            self.refuse("a second window for one stream", "write one [RANGE ... SLIDE ...]")
        clause: WindowClause = self._parse_bracket_window()
        table.set("window", clause)
