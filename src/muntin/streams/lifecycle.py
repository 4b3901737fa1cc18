"""The life of a stream in this process: open, until it is closed or something ends it."""

from __future__ import annotations

from collections import Counter
from types import TracebackType
from typing import Literal, Self

from muntin.errors import DataError
from muntin.faults import failed_values
from muntin.streams.intake import Batch, Intake


class Lifecycle:
    """What ends a stream, and that nothing can be asked of one that has ended.

    Args:
        on_error: Whether a value that fails ends it.
        on_bad_row: Whether a row without a usable time ends it.
    """

    def __init__(
        self, on_error: Literal["null", "fail"], on_bad_row: Literal["skip", "fail"]
    ) -> None:
        self._fails_on_error = on_error == "fail"
        self._fails_on_bad_row = on_bad_row == "fail"
        self._failure = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the stream; what is still open is not answered."""
        self._failure = self._failure or "the stream is closed"

    def _check(self) -> None:
        if self._failure:
            raise DataError(self._failure, hint="start another one with muntin.stream(...)")

    def _check_rows(self, intake: Intake, batch: Batch) -> None:
        """Ends the stream if the batch has bad rows, and they are to."""
        bad = intake.bad_rows(batch)
        if self._fails_on_bad_row and bad:
            self._failure = "the stream has ended: a batch held bad rows"
            raise intake.bad_rows_error(bad)

    def _check_values(self, errors: Counter[str]) -> None:
        """Ends the stream if values failed, and they are to."""
        if self._fails_on_error and errors.total():
            self._failure = "the stream has ended: values failed"
            raise failed_values(errors)
