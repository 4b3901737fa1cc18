"""How a query's results lie in a table of a database: its name, its columns, its key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

_HASHED = 10


@dataclass(frozen=True)
class Layout:
    """The columns of a table with their SQL types, and those that tell its rows apart.

    Without a key, rows can only be added: which of them belong together is not known. A ``live``
    table holds the rows of an answer while they are in it.
    """

    columns: Mapping[str, str]
    key: tuple[str, ...] = field(default=())
    live: bool = False

    def taking(self, wanted: Layout) -> Layout | None:
        """This layout with the columns that rows of another one need; None if it cannot hold them.

        Columns may be added. A column whose type changed, and another key, need another table.

        >>> kept = Layout({"t": "bigint", "n": "bigint"}, ("t",))
        >>> kept.taking(Layout({"t": "bigint", "top": "text"}, ("t",))).columns
        {'t': 'bigint', 'n': 'bigint', 'top': 'text'}
        >>> kept.taking(Layout({"t": "bigint", "n": "text"}, ("t",))) is None
        True
        """
        key = wanted.key or (self.key if set(self.key) <= set(wanted.columns) else ())
        united = {**self.columns, **wanted.columns}
        changed = any(united[name] != kind for name, kind in self.columns.items())
        # Rows of a live table are found by all their columns.
        added = self.live and united.keys() != self.columns.keys()
        if changed or added or key != self.key or wanted.live != self.live:
            return None
        return Layout(united, key, self.live)

    def to_text(self) -> str:
        """The layout as JSON."""
        said = {"live": True} if self.live else {}
        return json.dumps({"columns": dict(self.columns), "key": self.key, **said})

    @classmethod
    def of_text(cls, text: str) -> Layout:
        """Read what ``to_text`` wrote."""
        content = json.loads(text)
        return cls(content["columns"], tuple(content["key"]), content.get("live", False))


def quoted(*names: str) -> str:
    """A name as SQL spells it, whatever it holds, qualified by those before it.

    >>> quoted("main", 'a"b')
    '"main"."a""b"'
    """
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def table_of(query: str, prefix: str, room: int) -> str:
    """The table of a query; names that differ only in case share it.

    Names that begin with ``_`` are left to Muntin; no query's name has a ``-``.

    >>> table_of("Spikes", "", 63), table_of("_muntin_batches", "", 63)
    ('spikes', 'q-_muntin_batches')
    """
    name = query.lower()
    return fitted(prefix + (f"q-{name}" if name.startswith("_") else name), room)


def fitted(name: str, room: int) -> str:
    """A name of so many bytes at most; one that is cut ends in a hash, so that it stays unique.

    >>> fitted("a" * 20, 16)
    'aaaaa-42492da062'
    """
    encoded = name.encode()
    if len(encoded) <= room:
        return name
    digest = hashlib.sha256(encoded).hexdigest()[:_HASHED]
    return f"{encoded[: room - _HASHED - 1].decode(errors='ignore')}-{digest}"
