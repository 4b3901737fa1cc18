"""Python's garbage collection, put off while much is built that stays."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# What blocks made is searched before another one begins, once it is so many objects and a quarter
# of those that the last search left: Python's own rule, which does not see them.
_MANY = 50_000

_lock = threading.Lock()
_users = 0
_was_enabled = False
# Objects made in blocks since all were last searched, and how many were left then.
_made = 0
_left = 0


@contextmanager
def uncollected() -> Iterator[None]:
    """No collection until the end of the block: thousands of queries would be searched in vain.

    Reading and planning make millions of objects and hardly any garbage, and Python looks through
    all of them again and again while they grow, which takes as long as making them. What is made
    goes to the oldest generation, where Python looks when much else has come; a block looks there
    before it begins, if those before made much. The setting is one for all threads: the first to
    enter switches it off, and the last to leave puts it back.

    >>> with uncollected():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    global _users, _was_enabled, _made, _left  # noqa: PLW0603 - the setting itself is global
    is_due = False
    with _lock:
        if not _users:
            _was_enabled = gc.isenabled()
            is_due = _was_enabled and _made > max(_MANY, _left // 4)
            _made = 0 if is_due else _made
            gc.disable()
        _users += 1
    try:
        if is_due:
            gc.collect()
            # Counting them takes as long as it sounds: not at every block.
            _left = len(gc.get_objects())
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users and _was_enabled:
                # Or the next object would have all of them searched, as the youngest ones. What
                # others have frozen must stay so.
                if not gc.get_freeze_count():
                    _made += gc.get_count()[0]
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()
