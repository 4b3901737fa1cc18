"""Laws of manifests, snapshots and the choice of files to merge."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.sinks.files.compaction import FAN_IN, LARGE, choose
from muntin.sinks.files.log import CommitLog
from muntin.sinks.files.manifest import FileEntry, Manifest, chain, parse_name
from muntin.sinks.sink import SinkError

SIZES = st.one_of(st.integers(1, 1 << 20), st.integers(1, 2 * LARGE))
ENTRIES = st.builds(
    FileEntry,
    st.sampled_from(["a", "A", "b"]),
    st.uuids().map(lambda name: f"a/{name}.parquet"),
    st.integers(0, 1 << 40),
    SIZES,
    st.sampled_from(["s1", "s2"]),
)
FILES = st.lists(ENTRIES, max_size=60, unique_by=lambda entry: entry.path)
BATCHES = st.lists(st.integers(0, 1 << 60), min_size=1, max_size=12, unique=True).map(sorted)


@given(st.integers(0, 1 << 62), st.integers(-1, 1 << 62), FILES, st.booleans())
def test_manifests_come_back_as_they_were(
    batch: int, previous: int, files: list[FileEntry], is_checkpoint: bool
) -> None:
    manifest = Manifest(batch, previous, tuple(files), is_checkpoint)
    assert Manifest.from_bytes(manifest.to_bytes(), "m") == manifest
    assert parse_name(manifest.name) == (batch, is_checkpoint)


@given(st.integers(0, 99), FILES, st.data())
def test_a_damaged_manifest_is_refused_or_the_same(
    batch: int, files: list[FileEntry], data: st.DataObject
) -> None:
    content = Manifest(batch, -1, tuple(files)).to_bytes()
    cut = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(SinkError):
        Manifest.from_bytes(content[:cut], "m")


@given(BATCHES)
def test_names_sort_as_batches_do(batches: list[int]) -> None:
    names = [Manifest(batch, -1, ()).name for batch in batches]
    assert sorted(names) == names


def linked(batches: list[int]) -> list[Manifest]:
    previous = -1
    manifests = []
    for batch in batches:
        entry = FileEntry("q", f"q/{batch}", 1, 1, "s")
        manifests.append(Manifest(batch, previous, (entry,)))
        previous = batch
    return manifests


@given(BATCHES, st.data())
def test_a_gap_is_seen_wherever_it_is(batches: list[int], data: st.DataObject) -> None:
    manifests = linked(batches)
    whole = chain(None, manifests)
    assert whole is not None
    assert [entry.path for entry in whole.files] == [f"q/{batch}" for batch in batches]
    kept = data.draw(st.lists(st.sampled_from(manifests), unique=True, min_size=1))
    kept.sort(key=lambda manifest: manifest.batch)
    found = chain(None, kept)
    # A listing that lacks the end is an earlier moment; any other hole is no moment at all.
    assert (found is not None) == (kept == manifests[: len(kept)])


@given(FILES)
def test_only_alike_files_are_merged_and_each_once(files: list[FileEntry]) -> None:
    groups = choose(files)
    merged = [entry.path for group in groups for entry in group]
    assert len(merged) == len(set(merged))
    for group in groups:
        assert len(group) >= FAN_IN
        assert len({(entry.query.lower(), entry.schema) for entry in group}) == 1
        assert all(entry.bytes < LARGE for entry in group)
        assert sum(entry.bytes for entry in group) <= LARGE + max(e.bytes for e in group)


def test_a_row_is_rewritten_a_few_times_only() -> None:
    """However long the stream runs: here 4,000 files of one row set each, merged as they come."""
    files: list[FileEntry] = []
    rewritten = 0
    for batch in range(4000):
        files.append(FileEntry("q", f"q/{batch}", 1, 20_000, "s"))
        if batch % 64 == 63:
            for number, group in enumerate(choose(files)):
                gone = {entry.path for entry in group}
                rows = sum(entry.rows for entry in group)
                size = sum(entry.bytes for entry in group)
                rewritten += rows
                files = [entry for entry in files if entry.path not in gone]
                files.append(FileEntry("q", f"q/c{batch}-{number}", rows, size, "s"))
    assert sum(entry.rows for entry in files) == 4000
    assert rewritten <= 4 * 4000
    assert len(files) < 100


@pytest.mark.parametrize("seed", range(30))
def test_the_log_holds_what_was_committed_whatever_was_compacted(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    log = CommitLog(tmp_path)
    rows: dict[str, int] = {}
    batch = -1
    for step in range(40):
        snapshot = CommitLog(tmp_path).snapshot()
        assert sum(entry.rows for entry in snapshot.files) == sum(rows.values())
        assert snapshot.last == batch
        if rng.random() < 0.8 or not snapshot.batches:
            previous, batch = batch, batch + rng.randrange(1, 4)
            rows[f"q/{batch}"] = rng.randrange(5)
            log.append(batch, previous, [FileEntry("q", f"q/{batch}", rows[f"q/{batch}"], 1, "s")])
        else:
            merged = FileEntry("q", f"q/c{step}", sum(rows.values()), 1, "s")
            log.checkpoint(snapshot.last, snapshot.base, [merged])
            if rng.random() < 0.7:
                log.prune(snapshot.base)
            assert {entry.path for entry in snapshot.files} <= log.referenced()
