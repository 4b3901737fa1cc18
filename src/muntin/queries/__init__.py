"""Queries: what they are, how they are written, and the catalog of a running set."""

from muntin.queries.builder import QueryBuilder, query
from muntin.queries.catalog import Catalog, CreateQuery, DropQuery, ParsedFile, Statement
from muntin.queries.declarations import CreateSink, CreateSource, Option, Reference
from muntin.queries.query import BOUNDS, Join, JoinKind, Output, Query
from muntin.queries.source import SourceText, problem_at
from muntin.queries.spec import QueriesLike, queries, statements_of
from muntin.queries.sql.aggregate_calls import (
    AggregateCall,
    aggregate_calls,
    is_aggregate,
    replace_calls,
)
from muntin.queries.sql.normalize import canonical_text
from muntin.queries.sql.parser import parse, parse_expression, parse_file

__all__ = [
    "BOUNDS",
    "AggregateCall",
    "Catalog",
    "CreateQuery",
    "CreateSink",
    "CreateSource",
    "DropQuery",
    "Join",
    "JoinKind",
    "Option",
    "Output",
    "ParsedFile",
    "QueriesLike",
    "Query",
    "QueryBuilder",
    "Reference",
    "SourceText",
    "Statement",
    "aggregate_calls",
    "canonical_text",
    "is_aggregate",
    "parse",
    "parse_expression",
    "parse_file",
    "problem_at",
    "queries",
    "query",
    "replace_calls",
    "statements_of",
]
