"""Decides what queries share: edge rates, costs, weaving and placement."""

from muntin.aggregators import Choice, choose_technique
from muntin.optimizer.costs import WindowQuery
from muntin.optimizer.edge_counting import EDGE_METHODS, EdgeMethod, edge_count, edge_rate
from muntin.optimizer.edge_estimate import EdgeEstimate, estimate_edge_rate
from muntin.optimizer.edge_f1 import f1_terms
from muntin.optimizer.edge_sample import EdgeSample, SampledEdges
from muntin.optimizer.nodes import Node
from muntin.optimizer.placement import METHODS, Placement, place
from muntin.optimizer.placement_buckets import place_trees
from muntin.optimizer.sharing import OPTIMIZERS, Optimizer, OptimizerName

__all__ = [
    "EDGE_METHODS",
    "METHODS",
    "OPTIMIZERS",
    "Choice",
    "EdgeEstimate",
    "EdgeMethod",
    "EdgeSample",
    "Node",
    "Optimizer",
    "OptimizerName",
    "Placement",
    "SampledEdges",
    "WindowQuery",
    "choose_technique",
    "edge_count",
    "edge_rate",
    "estimate_edge_rate",
    "f1_terms",
    "place",
    "place_trees",
]
