"""Final aggregation: techniques that turn the partials of slices into answers for windows."""

from muntin.aggregators.aggregator import Aggregator
from muntin.aggregators.card import Card
from muntin.aggregators.choice import Choice, choose_technique
from muntin.aggregators.registry import create, info, legal, names, register

__all__ = [
    "Aggregator",
    "Card",
    "Choice",
    "choose_technique",
    "create",
    "info",
    "legal",
    "names",
    "register",
]
