"""Manifests: which files of a folder of results count.

``_commits/<batch>.json`` lists the files that a batch added and names the manifest before it;
``_commits/<batch>.checkpoint.json`` lists all files up to its batch. The committed files are
those of the last checkpoint and of all manifests of later batches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from muntin.sinks.durable import seal, unseal
from muntin.sinks.sink import SinkError

FORMAT = 2
_UNSEALED = 1  # the format before checksums, which is read and not written
NONE = -1  # the batch before the first
_NAME = re.compile(r"(\d{20})(\.checkpoint)?\.json")


@dataclass(frozen=True)
class FileEntry:
    """One file of results.

    Attributes:
        query: The name of the query, as it was written.
        path: Relative to the folder of results, with ``/`` between its parts.
        rows: How many rows it holds.
        bytes: Its size.
        schema: A fingerprint of its columns.
        checksum: The CRC-32 of its content; empty where nobody has taken it.
    """

    query: str
    path: str
    rows: int
    bytes: int
    schema: str
    checksum: str = ""


@dataclass(frozen=True)
class Manifest:
    """What a batch committed, or, as a checkpoint, everything up to a batch."""

    batch: int
    previous: int
    files: tuple[FileEntry, ...]
    is_checkpoint: bool = False

    @property
    def name(self) -> str:
        """The name of its file; names sort as batches do.

        >>> Manifest(7, -1, ()).name
        '00000000000000000007.json'
        """
        return f"{self.batch:020d}{'.checkpoint' if self.is_checkpoint else ''}.json"

    def to_bytes(self) -> bytes:
        """The content of its file."""
        content = {
            "format": FORMAT,
            "batch": self.batch,
            "previous": self.previous,
            "checkpoint": self.is_checkpoint,
            "files": [asdict(entry) for entry in self.files],
        }
        return seal(content)

    @classmethod
    def from_bytes(cls, content: bytes, where: str) -> Manifest:
        """Read what ``to_bytes`` wrote; anything else is refused.

        Args:
            content: The content of the file.
            where: Its path, for the message.
        """
        read = opened(content, where)
        try:
            files = tuple(FileEntry(**entry) for entry in read["files"])
            return cls(read["batch"], read["previous"], files, read["checkpoint"])
        except (KeyError, TypeError) as error:
            raise damaged(where, error) from error


def opened(content: bytes, where: str) -> dict[str, Any]:
    """What a file of ours says; one that has changed, or that a later Muntin wrote, is refused."""
    try:
        read = json.loads(content)
        found = read.get("format") if isinstance(read, dict) else None
        if found == FORMAT:
            return unseal(content)
    except ValueError as error:
        raise damaged(where, error) from error
    if found != _UNSEALED:
        raise SinkError(
            f"{where} has format {found!r}, this version of Muntin knows {FORMAT}",
            hint="use the version of Muntin that wrote it, or a later one",
        )
    known: dict[str, Any] = read
    return known


def damaged(where: str, reason: object) -> SinkError:
    """The error for a file of ours that is not as it was written."""
    return SinkError(
        f"{where} is damaged: {reason}", hint="it was changed since: restore it from a copy"
    )


def parse_name(name: str) -> tuple[int, bool] | None:
    """The batch of a manifest, and whether it is a checkpoint; None for other files.

    >>> parse_name("00000000000000000007.checkpoint.json"), parse_name(".tmp-1")
    ((7, True), None)
    """
    found = _NAME.fullmatch(name)
    return (int(found[1]), found[2] is not None) if found else None


@dataclass(frozen=True)
class Snapshot:
    """All that is committed at one moment.

    Attributes:
        files: The committed files.
        base: The batch of the checkpoint it starts from; -1 without one.
        batches: The later batches, in order.
    """

    files: tuple[FileEntry, ...] = ()
    base: int = NONE
    batches: tuple[int, ...] = field(default=())

    @property
    def last(self) -> int:
        """The last batch that committed results; -1 for none."""
        return self.batches[-1] if self.batches else self.base


def chain(checkpoint: Manifest | None, later: Sequence[Manifest]) -> Snapshot | None:
    """The snapshot that manifests give; None where one of them is missing.

    A folder is not listed in one instant: while another process compacts, a listing may lack
    a manifest. Each manifest names the one before it, so a gap is seen.

    >>> first, third = Manifest(0, -1, ()), Manifest(5, 3, ())
    >>> chain(None, [first, third]) is None
    True
    """
    expected = checkpoint.batch if checkpoint is not None else NONE
    files = list(checkpoint.files) if checkpoint is not None else []
    base = expected
    for manifest in later:
        if manifest.previous != expected:
            return None
        expected = manifest.batch
        files += manifest.files
    return Snapshot(tuple(files), base, tuple(manifest.batch for manifest in later))
