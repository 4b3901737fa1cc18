"""The folder of manifests, read and extended."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from muntin.sinks.durable import TEMPORARY, make_folder, remove, sync, write_atomically
from muntin.sinks.files.layout import COMMITS
from muntin.sinks.files.manifest import FileEntry, Manifest, Snapshot, chain, damaged, parse_name
from muntin.sinks.sink import SinkError

_LOOKS = 20
_PAUSE = 0.05


class CommitLog:
    """The manifests of one folder of results.

    One process extends it, any number read it at the same time. Two generations are kept: a
    checkpoint removes nothing that the checkpoint before it needs, so a reader that has just
    listed the folder still finds every file.
    """

    def __init__(self, root: Path) -> None:
        self.folder = root / COMMITS
        # A manifest never changes once it has its name.
        self._read: dict[str, Manifest] = {}

    def snapshot(self) -> Snapshot:
        """What is committed; a listing that another process disturbed is taken again."""
        for look in range(_LOOKS):
            if look:
                time.sleep(_PAUSE)
            try:
                found = self._chain()
            except FileNotFoundError:
                continue
            if found is not None:
                return found
        raise SinkError(
            f"a manifest is missing in {self.folder}",
            hint="files there must not be removed by hand: restore it from a copy",
        )

    def append(self, batch: int, previous: int, files: Iterable[FileEntry]) -> None:
        """Commit a batch: from the moment the file has its name, its results are there."""
        self._write(Manifest(batch, previous, tuple(files)))

    def checkpoint(self, batch: int, previous: int, files: Iterable[FileEntry]) -> None:
        """Replace all manifests up to a batch by one, with other files of the same rows."""
        self._write(Manifest(batch, previous, tuple(files), is_checkpoint=True))

    def reached(self) -> int:
        """The last batch up to which no manifest is missing; -1 for none."""
        newest, later = self._manifests()
        base = -1 if newest is None else newest.batch
        while (found := chain(newest, later)) is None:
            later.pop()
        return found.batches[-1] if found.batches else base

    def skip_to(self, batch: int) -> None:
        """Go on behind a batch, with the files of the manifests that are there."""
        newest, later = self._manifests()
        files = [entry for each in ([newest] if newest else []) + later for entry in each.files]
        last = max([batch, *(each.batch for each in later)])
        self.checkpoint(last, -1 if newest is None else newest.batch, files)

    def prune(self, base: int) -> None:
        """Remove manifests that neither the checkpoint of batch ``base`` nor a later one needs."""
        old = []
        for name in self._names():
            parsed = parse_name(name)
            if parsed is not None and (parsed[0] < base or parsed == (base, False)):
                old.append(self.folder / name)
                self._read.pop(name, None)
        remove(old)
        if old:
            sync(self.folder)

    def referenced(self) -> set[str]:
        """The paths that any manifest names, of whichever generation."""
        names = [name for name in self._names() if parse_name(name)]
        return {entry.path for name in names for entry in self._load(name).files}

    def remove_temporary(self) -> None:
        """Remove what a crash left between writing a manifest and naming it."""
        remove(self.folder / name for name in self._names() if name.startswith(TEMPORARY))

    def _chain(self) -> Snapshot | None:
        return chain(*self._manifests())

    def _manifests(self) -> tuple[Manifest | None, list[Manifest]]:
        """The newest checkpoint, and the manifests of later batches in order."""
        parsed = {name: parse_name(name) for name in self._names()}
        found = {name: kind for name, kind in parsed.items() if kind is not None}
        self._read = {name: read for name, read in self._read.items() if name in found}
        checkpoints = sorted(name for name, (_, is_checkpoint) in found.items() if is_checkpoint)
        newest = self._load(checkpoints[-1]) if checkpoints else None
        base = newest.batch if newest is not None else -1
        later = sorted(name for name, kind in found.items() if not kind[1] and kind[0] > base)
        return newest, [self._load(name) for name in later]

    def _names(self) -> list[str]:
        try:
            return [path.name for path in self.folder.iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _load(self, name: str) -> Manifest:
        if name not in self._read:
            path = self.folder / name
            manifest = Manifest.from_bytes(path.read_bytes(), str(path))
            if manifest.name != name:
                raise damaged(str(path), f"it is {manifest.name}")
            self._read[name] = manifest
        return self._read[name]

    def _write(self, manifest: Manifest) -> None:
        make_folder(self.folder)
        write_atomically(self.folder / manifest.name, manifest.to_bytes())
