"""Final aggregation: techniques that turn the partials of slices into answers for windows."""

from muntin.aggregators.aggregator import Aggregator
from muntin.aggregators.bank_registry import bank
from muntin.aggregators.card import Card
from muntin.aggregators.registry import create, info, legal, names

__all__ = ["Aggregator", "Card", "bank", "create", "info", "legal", "names"]
