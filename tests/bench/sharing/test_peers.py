"""Other engines give the answers that they are timed for, in every way they are asked."""

from __future__ import annotations

import pyarrow as pa
import pytest

from muntin_bench.sharing.data import hour
from muntin_bench.sharing.duckdb_peer import DuckDBPeer
from muntin_bench.sharing.peers import asked, check_close
from muntin_bench.sharing.polars_peer import PolarsPeer
from muntin_bench.sharing.rows import columns_of, sums
from muntin_bench.sharing.workloads import workload

MARKET = hour(3000, symbols=30)
PEERS = [PolarsPeer(MARKET), DuckDBPeer(MARKET)]
QUERIES = (*workload("C low sharing", 20).queries, *workload("A", 1).queries)


@pytest.fixture(scope="module")
def answers() -> dict[str, pa.Table]:
    columns = columns_of(MARKET)
    schema = pa.schema({"window_start": pa.int64(), "value": pa.float64()})
    return {query.name: pa.table(sums(query, columns), schema) for query in QUERIES[:20]}


@pytest.mark.parametrize("count", [1, 20])
@pytest.mark.parametrize(("peer", "way"), [(peer, way) for peer in PEERS for way in peer.ways])
def test_all_ways_give_the_same_windows(
    peer: PolarsPeer | DuckDBPeer, way: str, count: int, answers: dict[str, pa.Table]
) -> None:
    chosen = QUERIES[:count]
    check_close(peer.answer(chosen, way), chosen, answers, way)


@pytest.mark.parametrize("peer", PEERS)
def test_a_query_without_a_predicate(peer: PolarsPeer | DuckDBPeer) -> None:
    starts, values = sums(QUERIES[-1], columns_of(MARKET))
    for way in peer.ways:
        [found] = peer.answer(QUERIES[-1:], way)
        assert found.column("window_start").to_pylist() == starts
        assert found.column("value").to_pylist() == pytest.approx(values, rel=1e-9)


def test_a_different_answer_fails_loudly(answers: dict[str, pa.Table]) -> None:
    query = QUERIES[0]
    right = answers[query.name]
    wrong = right.column("value").to_pylist()
    wrong[1] *= 1.000001
    other = right.set_column(1, "value", pa.array(wrong))
    with pytest.raises(AssertionError, match="someone: q0000, window 1"):
        check_close([other], [query], answers, "someone")
    with pytest.raises(AssertionError, match="other windows"):
        check_close([right.slice(1)], [query], answers, "someone")


def test_one_query_is_one_of_many() -> None:
    assert asked(1).queries[0] in asked(16).queries
    assert asked(64).size == 64
