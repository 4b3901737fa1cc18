"""What a bucket tells the driver about a batch."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field

SCHEMA = "report binary"


@dataclass
class BucketReport:
    """One bucket's part of a batch.

    ``written`` are the sink's entries for the results of several buckets, which ``covers``
    counts: a task writes the results of all its buckets together.
    """

    bucket: int
    latest: int
    rows: int = 0
    late_rows: int = 0
    bad_rows: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    results: dict[str, int] = field(default_factory=dict)
    state_bytes: int = 0
    covers: int = 0
    written: Sequence[object] = ()

    def to_bytes(self) -> bytes:
        """The report as bytes."""
        return pickle.dumps(self, protocol=5)

    @classmethod
    def of_bytes(cls, data: bytes) -> BucketReport:
        """The report that `to_bytes` wrote."""
        report: BucketReport = pickle.loads(data)
        return report
