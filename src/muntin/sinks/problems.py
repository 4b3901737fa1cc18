"""What goes wrong where results are written or read."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from muntin.errors import MuntinError

_HINTS = {
    errno.ENOSPC: "free some space and start again: what was committed is safe",
    errno.EDQUOT: "raise the quota or free some space and start again: what was committed is safe",
    errno.EACCES: "give the user that runs Spark's workers the right to write there",
    errno.EPERM: "give the user that runs Spark's workers the right to write there",
    errno.EROFS: "choose a folder on a file system that can be written",
    errno.ENOTDIR: "choose a folder, not a file",
    errno.EEXIST: "choose a folder, not a file",
    errno.ENAMETOOLONG: "use a shorter name for the query or the folder",
}


class SinkError(MuntinError, RuntimeError):
    """Results cannot be written or read as asked; nothing is half committed."""

    @classmethod
    def of(cls, doing: str, path: str | Path, error: OSError) -> SinkError:
        """The error for something the file system refused.

        >>> print(SinkError.of("write", "out", OSError(errno.ENOSPC, "No space left on device")))
        cannot write out: No space left on device
        Hint: free some space and start again: what was committed is safe
        """
        # Arrow wraps the system's words in its own.
        reason = os.strerror(error.errno) if error.errno else str(error)
        return cls(f"cannot {doing} {path}: {reason}", hint=_HINTS.get(error.errno or 0))
