"""Charts of what a run has answered, as PNG files: ``muntin run --plot``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from muntin.charts import check_drawing, columns_drawn, draw
from muntin.errors import MuntinError
from muntin.sinks import MemorySink, key_of

# What is drawn of each query: the latest rows.
_MOST_ROWS = 100_000


class Charts:
    """The latest results of each stream of a run, drawn when it ends.

    Args:
        folder: Where the files go, one for each query.
    """

    def __init__(self, folder: Path) -> None:
        check_drawing()
        self.folder = folder
        self._kept: dict[str, _Kept] = {}

    def sink(self, stream: str) -> MemorySink:
        """What keeps the results of a stream; batches of two streams have the same numbers."""
        return self._kept.setdefault(stream, _Kept())

    def save(self) -> list[str]:
        """Draw every query that has results; what was written, and what was not, to be told."""
        return [self._saved(kept, name) for kept in self._kept.values() for name in kept.queries()]

    def _saved(self, kept: _Kept, name: str) -> str:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra, and slow to import

        table, groups = kept.table(name), kept.groups.get(name.lower(), 0)
        drawn = len(columns_drawn(table, groups))
        if not table.num_rows or not drawn:
            return f"{name} is not drawn: it has no {'results' if drawn else 'numbers'}"
        figure = Figure(figsize=(9, 1.5 + 3 * drawn), dpi=120, layout="constrained")
        draw(table, name, groups, figure.subplots(drawn, sharex=True))
        path = self.folder / f"{re.sub(r'[^0-9A-Za-z_-]', '_', name)}.png"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            figure.savefig(path)
        except OSError as error:
            raise MuntinError(
                f"{path} cannot be written: {error.strerror}", hint="give another folder to --plot"
            ) from error
        return f"wrote {path}"


class _Kept(MemorySink):
    """Results of one stream, and how many group columns each query has."""

    def __init__(self) -> None:
        super().__init__(_MOST_ROWS)
        self.groups: dict[str, int] = {}

    def declare(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Take note of the key: the bounds of a window, and the groups."""
        super().declare(schemas)
        self.groups |= {
            name.lower(): max(len(key_of(each)) - 2, 0) for name, each in schemas.items()
        }
