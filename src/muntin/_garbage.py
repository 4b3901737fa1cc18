"""Python's garbage collection, put off while much is built that stays."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_users = 0
_was_enabled = False


@contextmanager
def uncollected() -> Iterator[None]:
    """No collection until the end of the block: thousands of queries would be searched in vain.

    Reading and planning make millions of objects and hardly any garbage, and Python looks through
    all of them again and again while they grow, which takes as long as making them. What is made
    goes to the oldest generation, where it is looked at when much else has come. The setting is
    one for all threads: the first to enter switches it off, and the last to leave puts it back.

    >>> with uncollected():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    global _users, _was_enabled  # noqa: PLW0603 - the setting itself is global
    with _lock:
        if not _users:
            _was_enabled = gc.isenabled()
            gc.disable()
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users and _was_enabled:
                # Or the next object would have all of them searched, as the youngest ones. What
                # others have frozen must stay so.
                if not gc.get_freeze_count():
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()
