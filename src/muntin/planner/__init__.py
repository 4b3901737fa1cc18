"""Decides what queries share: edge rates, costs, weaving and placement."""

from muntin.aggregators import Choice, choose_technique
from muntin.planner.build import STEPS, build_plan, plan_draft
from muntin.planner.costs.formula import WindowQuery
from muntin.planner.draft import Draft
from muntin.planner.edges.counts import EDGE_METHODS, EdgeMethod, edge_count, edge_rate
from muntin.planner.edges.estimate import EdgeEstimate, estimate_edge_rate
from muntin.planner.edges.f1 import f1_terms
from muntin.planner.placement.board import Node
from muntin.planner.placement.buckets import place_trees
from muntin.planner.placement.optimizers import METHODS, Placement, place
from muntin.planner.replanner import Moment, Replanner
from muntin.planner.sharing import OPTIMIZERS, Optimizer, OptimizerName

__all__ = [
    "EDGE_METHODS",
    "METHODS",
    "OPTIMIZERS",
    "STEPS",
    "Choice",
    "Draft",
    "EdgeEstimate",
    "EdgeMethod",
    "Moment",
    "Node",
    "Optimizer",
    "OptimizerName",
    "Placement",
    "Replanner",
    "WindowQuery",
    "build_plan",
    "choose_technique",
    "edge_count",
    "edge_rate",
    "estimate_edge_rate",
    "f1_terms",
    "place",
    "place_trees",
    "plan_draft",
]
