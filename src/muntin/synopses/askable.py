"""What can be asked while it runs: a stream in this process, several of them, or a run on Spark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from muntin.queries import AnyKeep, CreateKeep, DropKeep, KeepsLike, keep_statements
from muntin.queries.source import check_text
from muntin.synopses.answer import Answer, Isolation
from muntin.synopses.asking import Asking
from muntin.synopses.options import MAX_ROWS, TIMEOUT
from muntin.synopses.prepared import Prepared
from muntin.windows import DurationLike


class Askable(ABC):
    """Keeps that join and leave, and questions that they answer."""

    def keep(self, keeps: KeepsLike) -> None:
        """Keep something to be asked about: all that is named, or nothing if one is refused.

        It takes effect with the next batch. A keep that is there before the first batch knows that
        there was nothing earlier; one that joins later has all rows above the largest event time so
        far. It emits nothing and changes no query's answers. ``CREATE OR REPLACE KEEP`` begins
        anew, ``DROP KEEP`` drops one. On Spark the change is durable on return.

        Args:
            keeps: ``CREATE KEEP`` statements as text, what :func:`muntin.keep` makes, or a list.
        """
        self._apply_keeps(keep_statements(keeps))

    def drop_keep(self, name: str) -> None:
        """Keep something no longer, from the next batch on."""
        self._apply_keeps([DropKeep(check_text(name, "the name of a keep"))])

    @abstractmethod
    def keeps(self) -> Sequence[AnyKeep]:
        """What is kept, in the order it joined."""

    @abstractmethod
    def explain_keeps(self) -> str:
        """What is kept, and what it takes: entries per row, entries and bytes."""

    def ask(
        self,
        sql: str,
        *,
        isolation: Isolation = "lws",
        timeout: DurationLike = TIMEOUT,
        max_rows: int = MAX_ROWS,
    ) -> Answer:
        """Answer a question at once, from what is kept. Any thread may ask.

        On Spark it is what is kept of committed batches, and no Spark job runs.

        Args:
            sql: A SELECT over ``[RANGE r]``, which ends one tick after the latest event time, or
                ``AS OF WATERMARK``, or ``AS OF`` a time; ``ALIGNED`` asks for whole slices. Or
                over ``[ROWS n]``, where a keep of the latest rows was declared.
            isolation: ``lws`` reads the newest version, also if a batch comes meanwhile; ``ws``
                the one that was newest when the question came.
            timeout: How long it may take.
            max_rows: How many rows the answer may have.

        Raises:
            QueryError: If the question cannot be read.
            QuestionError: If nothing kept can answer it; the hint has the KEEP that would.

        >>> import muntin
        >>> import pyarrow as pa
        >>> stream = muntin.stream(
        ...     "SELECT count(*) AS n FROM t [RANGE 60 SLIDE 60]",
        ...     {"ts": "int64", "k": "string", "v": "int64"},
        ...     keeps="CREATE KEEP recent AS SELECT k, max(v) FROM t [RANGE 60 SLIDE 5] GROUP BY k",
        ... )
        >>> rows = pa.table({"ts": [1, 7, 12], "k": ["a", "a", "b"], "v": [9, 3, 4]})
        >>> answers = stream.feed(rows)
        >>> answer = stream.ask("SELECT max(v) AS top FROM t [RANGE 8] WHERE k = 'a'")
        >>> answer.frame.to_pylist(), answer.exact, answer.covers
        ([{'top': 3}], True, Covers(start=5, end=15))
        """
        return self._asked().ask(sql, isolation=isolation, timeout=timeout, max_rows=max_rows)

    def prepare(
        self,
        sql: str,
        *,
        isolation: Isolation = "lws",
        timeout: DurationLike = TIMEOUT,
        max_rows: int = MAX_ROWS,
    ) -> Prepared:
        """A question with ``?`` in place of constants, to be called with their values."""
        return self._asked().prepare(sql, isolation=isolation, timeout=timeout, max_rows=max_rows)

    @abstractmethod
    def _asked(self) -> Asking:
        """What answers questions."""

    @abstractmethod
    def _apply_keeps(self, statements: Sequence[CreateKeep | DropKeep]) -> None:
        """Let keeps join and leave: all of them, or none if one is refused."""
