"""Streams in this process, without Spark: batches in, what is due out."""

from muntin.streams.group import StreamGroup
from muntin.streams.live import LiveEngine
from muntin.streams.progress import GroupProgress, StreamProgress
from muntin.streams.single import Stream
from muntin.streams.snapshots import check_lateness, check_resumed, unpacked
from muntin.streams.start import open_group

__all__ = [
    "GroupProgress",
    "LiveEngine",
    "Stream",
    "StreamGroup",
    "StreamProgress",
    "check_lateness",
    "check_resumed",
    "open_group",
    "unpacked",
]
