"""How commands end: the exit codes that scripts can rely on."""

from __future__ import annotations

from muntin.errors import MuntinError

BAD_INPUT = 1
RUN_FAILED = 3
# As shells have it for a process that a signal ended: 130 after Ctrl-C, 143 after SIGTERM.
SIGNALLED = 128


class FailedRunError(MuntinError):
    """A run that had started, and came to an end it was not asked for."""
