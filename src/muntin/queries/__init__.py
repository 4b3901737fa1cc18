"""Queries: what they are, how they are written, and the catalog of a running set."""

from muntin.queries.asking.apart import queries_and_keeps
from muntin.queries.asking.builder import (
    KeepBuilder,
    KeepLike,
    KeepsLike,
    keep,
    keep_statements,
    keeps,
)
from muntin.queries.asking.keeps import AnyKeep, CreateKeep, DropKeep, Keep, RowKeep
from muntin.queries.asking.questions import Question, read_question
from muntin.queries.builder import QueryBuilder, query
from muntin.queries.catalog import (
    AnyQuery,
    Catalog,
    CreateQuery,
    CreateRows,
    DropQuery,
    MixedCatalog,
    ParsedFile,
    Statement,
    aggregate_query,
)
from muntin.queries.declarations import CreateSink, CreateSource, Option, Reference
from muntin.queries.query import BOUNDS, Join, JoinKind, Output, Query
from muntin.queries.row_builder import RowBuilder
from muntin.queries.rows import Aggregation, Compound, Existence, RowQuery, RowSource, Selection
from muntin.queries.source import SourceText, problem_at
from muntin.queries.spec import (
    QueriesLike,
    all_queries,
    queries,
    statements_of,
)
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
    "Aggregation",
    "AnyKeep",
    "AnyQuery",
    "Catalog",
    "Compound",
    "CreateKeep",
    "CreateQuery",
    "CreateRows",
    "CreateSink",
    "CreateSource",
    "DropKeep",
    "DropQuery",
    "Existence",
    "Join",
    "JoinKind",
    "Keep",
    "KeepBuilder",
    "KeepLike",
    "KeepsLike",
    "MixedCatalog",
    "Option",
    "Output",
    "ParsedFile",
    "QueriesLike",
    "Query",
    "QueryBuilder",
    "Question",
    "Reference",
    "RowBuilder",
    "RowKeep",
    "RowQuery",
    "RowSource",
    "Selection",
    "SourceText",
    "Statement",
    "aggregate_calls",
    "aggregate_query",
    "all_queries",
    "canonical_text",
    "is_aggregate",
    "keep",
    "keep_statements",
    "keeps",
    "parse",
    "parse_expression",
    "parse_file",
    "problem_at",
    "queries",
    "queries_and_keeps",
    "query",
    "read_question",
    "replace_calls",
    "statements_of",
]
