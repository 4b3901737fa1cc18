"""The grammar of what is kept and asked: CREATE KEEP, DROP KEEP, and the windows of questions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from muntin.queries.source import shown
from muntin.queries.sql.clauses import CreateKeepNode, DropKeepNode, OptionNode, WindowClause
from muntin.queries.sql.grammar import Grammar, RefusedError

KEEP_EXAMPLE = (
    "CREATE KEEP name AS SELECT symbol, max(price), count(*)"
    " FROM trades [RANGE '1 hour' SLIDE '1 second'] GROUP BY symbol"
)
KEEP_STATEMENT_HINT = "a statement here starts with CREATE KEEP or DROP KEEP"
CUT_HINT = "write CUT (vol > 1000, vol > 5000) at the end"
AS_OF_HINT = "write AS OF LATEST, AS OF WATERMARK, or AS OF '2026-01-31 12:00:00'"
WITHIN_HINT = "write WITHIN 1%"
PARTITION_HINT = "write [PARTITION BY symbol ROWS 10]"
KEEP_OPTIONS = ("synopsis", "buckets")
KEEP_OPTION_HINT = (
    "write WITH (synopsis = 'interval') or WITH (synopsis = 'timegram', buckets = 64)"
)
_INSTANTS = ("LATEST", "WATERMARK")


class PartitionGrammar(Grammar):
    """Reads windows of the latest rows of each partition, where these may stand."""

    _by_partition = False

    def _parse_bracket_window(self) -> WindowClause:
        following = self._tokens[self._index + 1 : self._index + 2]
        partitioned = [each for each in following if each.token_type == TokenType.PARTITION_BY]
        if not (self._by_partition and partitioned):
            return super()._parse_bracket_window()
        opening = self._curr
        self._advance(2)
        columns = [self._parse_partition_column()]
        while self._match(TokenType.COMMA):
            columns.append(self._parse_partition_column())
        if not self._match_texts(("ROWS",)):
            self.refuse("expected ROWS after PARTITION BY and its columns", PARTITION_HINT)
        clause = WindowClause(
            spelling="[...]",
            measure="rows",
            align="end",
            range=self._parse_extent(),
            partition=columns,
        )
        if not self._match(TokenType.R_BRACKET):
            self.refuse("expected ] after the number of rows", PARTITION_HINT)
        return clause.update_positions(opening)

    def _parse_partition_column(self) -> exp.Expr:
        token = self._curr
        name = self._parse_id_var(any_token=False)
        if name is None:
            self.refuse("expected a column after PARTITION BY", PARTITION_HINT, token)
        return name.update_positions(token)


class KeepGrammar(PartitionGrammar):
    """Reads CREATE KEEP and DROP KEEP beside what the grammar below it reads."""

    CREATE_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        **Grammar.CREATE_PARSERS,
        "KEEP": lambda self, replace: self._parse_create_keep(replace),
    }

    def _parse_create_keep(self, replace: bool) -> exp.Expr:
        name = self._parse_query_name(KEEP_EXAMPLE, "keep")
        options = self._parse_keep_options()
        if not self._match(TokenType.ALIAS):
            self.refuse("expected AS after the name", f"write {KEEP_EXAMPLE}")
        self._by_partition = True
        try:
            query = self._parse_query()
        finally:
            self._by_partition = False
        cuts = self._parse_cuts() if self._match_texts(("CUT",)) else []
        options += self._parse_keep_options()
        return CreateKeepNode(
            this=name, expression=query, replace=replace, cuts=cuts, options=options
        )

    def _parse_keep_options(self) -> list[exp.Expr]:
        """WITH and its options, before AS or at the end."""
        if not self._match(TokenType.WITH):
            return []
        if not self._match(TokenType.L_PAREN):
            self.refuse("expected ( after WITH", KEEP_OPTION_HINT)
        options = [self._parse_keep_option()]
        while self._match(TokenType.COMMA):
            options.append(self._parse_keep_option())
        if not self._match(TokenType.R_PAREN):
            self.refuse("expected , or ) after an option", KEEP_OPTION_HINT)
        return options

    def _parse_keep_option(self) -> exp.Expr:
        key = self._curr
        name = key.text.lower()
        if name not in KEEP_OPTIONS:
            self.refuse(f"expected {' or '.join(KEEP_OPTIONS)}", KEEP_OPTION_HINT)
        self._advance()
        if not self._match(TokenType.EQ):
            self.refuse(f"expected = after {shown(key.text)}", KEEP_OPTION_HINT)
        value = self._curr
        if name == "synopsis" and value.token_type != TokenType.STRING:
            self.refuse("expected a string", KEEP_OPTION_HINT)
        if name == "buckets" and not value.text.isdecimal():
            self.refuse("expected a whole number", KEEP_OPTION_HINT)
        self._advance()
        return OptionNode(this=name, value=value.text, at=value.start).update_positions(key)

    def _parse_table_hints(self) -> list[exp.Expr] | None:
        """Hints of other systems; but the options of a keep may follow its stream."""
        following = self._tokens[self._index + 2 : self._index + 3]
        if following and following[0].text.lower() in KEEP_OPTIONS:
            return None
        return super()._parse_table_hints()

    def _parse_cuts(self) -> list[exp.Expr]:
        if not self._match(TokenType.L_PAREN):
            self.refuse("expected ( after CUT", CUT_HINT)
        cuts: list[exp.Expr] = []
        while True:
            cut = self._parse_disjunction()
            if cut is None:
                self.refuse("expected a condition in CUT", CUT_HINT)
            cuts.append(cut)
            if not self._match(TokenType.COMMA):
                break
        if not self._match(TokenType.R_PAREN):
            self.refuse("expected , or ) in CUT", CUT_HINT)
        return cuts

    def _parse_table_alias(self, *args: Any, **kwargs: Any) -> exp.TableAlias | None:
        """An alias; CUT behind a stream is none."""
        if self._match_texts(("CUT",), advance=False):
            return None
        return super()._parse_table_alias(*args, **kwargs)

    def _parse_drop_statement(self) -> exp.Expr:
        if self._match_texts(("KEEP",)):
            return DropKeepNode(this=self._parse_query_name("DROP KEEP name", "keep"))
        return super()._parse_drop_statement()


class OnlyKeepGrammar(KeepGrammar):
    """Reads keeps and nothing else."""

    STATEMENT_HINT: ClassVar[str] = KEEP_STATEMENT_HINT
    CREATE_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        "KEEP": KeepGrammar.CREATE_PARSERS["KEEP"],
    }

    def _parse_drop_statement(self) -> exp.Expr:
        if not self._match_texts(("KEEP",), advance=False):
            self.refuse("expected KEEP after DROP", "write DROP KEEP name")
        return super()._parse_drop_statement()

    def _parse_other_statement(self) -> exp.Expr:
        self.refuse("only keeps can be kept", f"write {KEEP_EXAMPLE}")


class QuestionGrammar(PartitionGrammar):
    """Reads one question: a SELECT whose window may say when it ends."""

    _by_partition = True

    STATEMENT_HINT: ClassVar[str] = "a question starts with SELECT"
    CREATE_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {}

    def statement(self, tokens: list[Token], text: str) -> exp.Expr:
        """Reads the tokens of one SELECT."""
        if tokens and tokens[0].token_type not in (TokenType.SELECT, TokenType.L_PAREN):
            raise RefusedError("expected SELECT", self.STATEMENT_HINT, tokens[0])
        return super().statement(tokens, text)

    def _parse_asking(self, parts: dict[str, Any]) -> None:
        word = self._curr
        self._advance()
        kind = word.text.upper()
        key = {"AS": "as_of", "ALIGNED": "aligned", "WITHIN": "within"}[kind]
        if key in parts:
            self.refuse(f"a second {kind}", AS_OF_HINT, word)
        if key == "aligned":
            parts[key] = True
        elif key == "within":
            parts[key] = self._parse_width()
        else:
            parts[key] = self._parse_instant()

    def _parse_instant(self) -> exp.Expr:
        if not self._match_texts(("OF",)):
            self.refuse("expected OF after AS", AS_OF_HINT)
        token = self._curr
        if self._match_texts(_INSTANTS):
            return exp.Var(this=token.text.upper())
        self._match_texts(("TIMESTAMP", "DATE"))
        sign = "-" if self._match(TokenType.DASH) else ""
        token = self._curr
        if token.token_type not in (TokenType.STRING, TokenType.NUMBER):
            self.refuse("expected when the window ends", AS_OF_HINT)
        self._advance()
        literal = exp.Literal(
            this=sign + token.text, is_string=token.token_type == TokenType.STRING
        )
        return literal.update_positions(token)

    def _parse_width(self) -> exp.Expr:
        token = self._curr
        if token.token_type != TokenType.NUMBER:
            self.refuse("expected a number after WITHIN", WITHIN_HINT)
        self._advance()
        if not (self._match(TokenType.MOD) or self._match_texts(("PERCENT",))):
            self.refuse("expected % after the number", WITHIN_HINT)
        return exp.Literal.number(token.text).update_positions(token)
