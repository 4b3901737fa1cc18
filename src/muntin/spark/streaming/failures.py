"""Why a run failed, in plain words: Spark's reports of a failed task fill a screen."""

from __future__ import annotations

from muntin.errors import MuntinError
from muntin.spark.streaming.problems import RunError

_HINT = "what is committed is safe: start again with the same checkpoint when the cause is gone"


def as_run_error(error: BaseException) -> MuntinError:
    """The error to raise for whatever ended a run; one of Muntin's own is raised as it is."""
    if isinstance(error, MuntinError):
        return error
    return RunError(f"the run failed: {reason_of(str(error))}", hint=_HINT)


def reason_of(text: str) -> str:
    r"""The line that says why, of a report with stack traces.

    >>> reason_of("Job aborted\nTraceback (most recent call last):\n  File x\nValueError: no\n")
    'ValueError: no'
    """
    lines = text.splitlines()
    marks = [i for i, line in enumerate(lines) if line.strip().startswith("Traceback (most recent")]
    for mark in reversed(marks):
        for line in lines[mark + 1 :]:
            if line and not line[0].isspace():
                return line.strip()
    given = [line.strip() for line in lines if line.strip()]
    return given[0] if given else "Spark gives no reason"
