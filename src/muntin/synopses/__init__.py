"""What is kept of streams to be asked, and the asking."""

from muntin.synopses.answer import Answer, AsOf, Covers, Isolation
from muntin.synopses.askable import Askable
from muntin.synopses.asking import Asking, Versions
from muntin.synopses.keeps.kept import Kept, plan_keep
from muntin.synopses.keeps.replica import Moment, Replica, Version
from muntin.synopses.prepared import Prepared

__all__ = [
    "Answer",
    "AsOf",
    "Askable",
    "Asking",
    "Covers",
    "Isolation",
    "Kept",
    "Moment",
    "Prepared",
    "Replica",
    "Version",
    "Versions",
    "plan_keep",
]
