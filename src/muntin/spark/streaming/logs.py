"""Spark's own logs in a checkpoint: what each batch reads, and which batches are committed."""

from __future__ import annotations

import json
from pathlib import Path

from muntin.spark.streaming.writing import damaged, missing

_HEAD = 2  # lines before the offsets: the version of the format, and when the batch was planned


class SparkLogs:
    """The offsets and commits in Spark's part of a checkpoint.

    Spark notes the offsets of a batch before it runs, and its commit when all is done: so there
    is a commit for every batch with offsets, but for the last.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def committed(self) -> int:
        """The last batch that Spark has committed; -1 for none."""
        return self._last("commits")

    def planned(self) -> int:
        """The last batch that Spark has noted the offsets of; -1 for none."""
        return self._last("offsets")

    def offsets(self, batch: int) -> tuple[str, ...]:
        """How far each source is read by the end of a batch, without the clock it was planned at.

        Each is JSON with its keys in order, or the text that Spark has.
        """
        path = self.folder / "offsets" / str(batch)
        return tuple(map(_canonical, self._lines(path)[_HEAD:]))

    def check_readable(self) -> None:
        """Refuse files that Spark would fail at with an error that does not name them."""
        path, planned = self.folder / "metadata", self.planned()
        if self.committed() >= 0:
            self._lines(self.folder / "commits" / str(self.committed()))
        for batch in range(max(planned - 1, 0), planned + 1):
            self.offsets(batch)
        try:
            json.loads(path.read_bytes())["id"]
        except FileNotFoundError:
            if planned >= 0:
                raise missing(path) from None
        except (ValueError, KeyError, TypeError) as error:
            raise damaged(path, "it does not hold the id of a streaming query") from error

    def _last(self, log: str) -> int:
        folder = self.folder / log
        names = (path.name for path in folder.iterdir()) if folder.is_dir() else ()
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def _lines(self, path: Path) -> list[str]:
        """The lines of a log's file: a version and JSON at least."""
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            json.loads(lines[1])
        except FileNotFoundError:
            raise missing(path) from None
        except (ValueError, IndexError) as error:
            raise damaged(path, "it is not a log of Spark's, or cut off") from error
        return lines


def _canonical(line: str) -> str:
    try:
        return json.dumps(json.loads(line), sort_keys=True, separators=(",", ":"))
    except ValueError:
        return line
