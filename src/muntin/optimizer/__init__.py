"""Decides what queries share: edge rates, costs, weaving and placement."""

from muntin.optimizer.edge_counting import EDGE_METHODS, EdgeMethod, edge_count, edge_rate
from muntin.optimizer.edge_estimate import EdgeEstimate, estimate_edge_rate
from muntin.optimizer.edge_f1 import f1_terms
from muntin.optimizer.edge_rates import EdgeRates
from muntin.optimizer.edge_sample import EdgeSample, SampledEdges

__all__ = [
    "EDGE_METHODS",
    "EdgeEstimate",
    "EdgeMethod",
    "EdgeRates",
    "EdgeSample",
    "SampledEdges",
    "edge_count",
    "edge_rate",
    "estimate_edge_rate",
    "f1_terms",
]
