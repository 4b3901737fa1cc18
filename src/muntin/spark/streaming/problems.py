"""What goes wrong with a run and its checkpoint, in plain words."""

from __future__ import annotations

import re
from pathlib import Path

from muntin.errors import MuntinError
from muntin.spark.problems import SparkError, worker_trouble

_HINT = "what is committed is safe: start again with the same checkpoint when the cause is gone"
# What Python prints last for an error: its class with the module it is from, and its words.
_RAISED = re.compile(r"(?:[A-Za-z_][\w$]*\.)*[A-Za-z_][\w$]*(?:Error|Exception): (.+)")
# What Spark writes before the reason why a task failed in the JVM.
_LOST = re.compile(r"Lost task [^\n]*?\([^()\n]*executor [^()\n]*\): (.+)")

# What Spark writes before the reason why a query failed that no batch tells of.
_FAILED = re.compile(r"\[STREAM_FAILED\] .*? terminated with exception: (.*?)(?: SQLSTATE: \w+)?")

_FULL = ("No space left on device", "Disk quota exceeded")
# Where the state is not what Spark wrote, it does not always say which file it was reading.
_STATE = ("[CANNOT_LOAD_STATE_STORE", "streaming.state.SchemaHelper", "StateSchemaCompatibility")
RESTORE = (
    "restore the checkpoint from a copy, or start with an empty one and another folder for results"
)


class CheckpointError(SparkError):
    """A checkpoint that a run cannot continue with, or that another run holds."""


class RunError(SparkError):
    """A run that has come to an end it was not asked for."""


def as_run_error(error: BaseException, checkpoint: Path) -> MuntinError:
    r"""The error to raise for whatever ended a run; one of Muntin's own is raised as it is.

    >>> as_run_error(OSError("No space left on device"), Path("ck")).message
    "the run failed: No space left on device, for the checkpoint ck or Spark's temporary files"
    >>> report = "Traceback (most recent call last):\n  File x\na.SinkError: full\nHint: "
    >>> as_run_error(OSError(report + "go on with the same checkpoint"), Path("ck")).hint
    'go on with the same checkpoint'
    """
    if isinstance(error, MuntinError):
        return error
    # PySpark keeps Java's own report apart.
    report = f"{error}\n{getattr(error, '_stackTrace', None) or ''}"
    reason, hint = worker_trouble(str(error)) or reason_of(str(error))
    if any(words in report for words in _STATE) and not any(words in report for words in _FULL):
        told = f": {reason}" if reason else ""
        return CheckpointError(
            f"the state in {checkpoint / 'spark' / 'state'} cannot be read{told}", hint=RESTORE
        )
    if hint is None and any(words in reason for words in _FULL):
        # Spark does not say where.
        reason = f"{reason}, for the checkpoint {checkpoint} or Spark's temporary files"
    # A sink whose disk is full says by itself what is safe.
    parts = [hint, None if hint and "same checkpoint" in hint else _HINT]
    return RunError(f"the run failed: {reason}", hint="; ".join(filter(None, parts)))


def reason_of(text: str) -> tuple[str, str | None]:
    r"""The line that says why, of a report with stack traces, and the hint below it.

    >>> report = "Job aborted\nTraceback (most recent call last):\n  File x\na.SinkError: full\n"
    >>> reason_of(report + "Hint: free some space\n")
    ('full', 'free some space')
    >>> reason_of("Job aborted\nTraceback (most recent call last):\n  File x\nValueError: no\n")
    ('ValueError: no', None)
    >>> reason_of("calling o1\n: a.B: aborted\n\tat x\nCaused by: a.B: it died\n\tat y")
    ('it died', None)
    >>> reason_of("[STREAM_FAILED] Query [id = 1] terminated with exception: gone SQLSTATE: XXKST")
    ('gone', None)
    >>> reason_of("An error occurred while calling o1.start.\n: a.B: Checksum error: ck/x\n\tat y")
    ('Checksum error: ck/x', None)
    """
    lines = text.splitlines()
    marks = [i for i, line in enumerate(lines) if line.strip().startswith("Traceback (most recent")]
    for mark in reversed(marks):
        for place in range(mark + 1, len(lines)):
            if lines[place] and not lines[place][0].isspace():
                return _raised(lines[place].strip(), lines[place + 1 : place + 2])
    # Java's own report tells more by its causes than by its first line.
    marks_of_java = ("Caused by: ", ": ")
    said = [line for mark in marks_of_java for line in lines if line.startswith(mark)]
    causes = [line.split(": ", 2) for line in said]
    told = [cause[2] for cause in causes if len(cause) > 2]
    given = told or [line.strip() for line in lines if line.strip()]
    failed = _FAILED.fullmatch(given[0]) if given else None
    if failed is not None:
        return failed[1], None
    return given[0] if given else "Spark gives no reason", None


def _raised(line: str, after: list[str]) -> tuple[str, str | None]:
    """Of an error with a hint, which is one of Muntin's, only the words are of use."""
    if not (after and after[0].startswith("Hint: ")):
        return line, None
    return _words(line), after[0].removeprefix("Hint: ")


def _words(line: str) -> str:
    """What an error says, without the name of its class."""
    found = _RAISED.fullmatch(line.strip())
    return found[1] if found else line.strip()
