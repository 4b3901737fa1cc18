"""Queries: what they are, how they are written, and the catalog of a running set."""

from muntin.queries.aggregate_calls import (
    AggregateCall,
    aggregate_calls,
    is_aggregate,
    replace_calls,
)
from muntin.queries.builder import QueryBuilder, query
from muntin.queries.catalog import Catalog
from muntin.queries.join import Join, JoinKind
from muntin.queries.normalize import canonical_text
from muntin.queries.parser import CreateQuery, DropQuery, Statement, parse, parse_expression
from muntin.queries.query import BOUNDS, Output, Query
from muntin.queries.source import SourceText, problem_at
from muntin.queries.spec import QueriesLike, queries

__all__ = [
    "BOUNDS",
    "AggregateCall",
    "Catalog",
    "CreateQuery",
    "DropQuery",
    "Join",
    "JoinKind",
    "Output",
    "QueriesLike",
    "Query",
    "QueryBuilder",
    "SourceText",
    "Statement",
    "aggregate_calls",
    "canonical_text",
    "is_aggregate",
    "parse",
    "parse_expression",
    "problem_at",
    "queries",
    "query",
    "replace_calls",
]
