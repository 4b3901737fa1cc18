"""Other engines give the answers that they are timed for, in every way they are asked."""

from __future__ import annotations

import pyarrow as pa
import pytest

from muntin_bench.peers.compare import AnswersDifferError
from muntin_bench.sharing.data import hour
from muntin_bench.sharing.peers import Peer, answered, asked, peers_of, spelled
from muntin_bench.sharing.rows import columns_of, sums
from muntin_bench.sharing.workloads import SharedQuery, workload

MARKET = hour(3000, symbols=30)
PEERS = peers_of(MARKET)
QUERIES = workload("C low sharing", 20).queries
NO_PREDICATE = workload("A", 1).queries


def expected(query: SharedQuery) -> pa.Table:
    """What the rows say, window by window."""
    schema = pa.schema({"window_start": pa.int64(), "total": pa.float64()})
    return pa.table(sums(query, columns_of(MARKET)), schema)


@pytest.mark.parametrize("chosen", [QUERIES[:1], QUERIES, NO_PREDICATE])
@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: f"{peer.name} {peer.mode}")
def test_all_ways_give_the_same_windows(peer: Peer, chosen: tuple[SharedQuery, ...]) -> None:
    specs = [spelled(query) for query in chosen]
    how = answered(peer, specs, {query.name: expected(query) for query in chosen})
    assert ("slices" in how) == (peer.mode == "slices")


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: f"{peer.name} {peer.mode}")
def test_a_different_answer_fails_loudly(peer: Peer) -> None:
    query = QUERIES[0]
    right = expected(query)
    wrong = right.column("total").to_pylist()
    wrong[1] *= 1.000001
    other = right.set_column(1, "total", pa.array(wrong))
    with pytest.raises(AnswersDifferError, match="query q0000 total is"):
        answered(peer, [spelled(query)], {query.name: other})
    with pytest.raises(AnswersDifferError, match="rows, not"):
        answered(peer, [spelled(query)], {query.name: right.slice(1)})


def test_one_query_is_one_of_many() -> None:
    assert asked(1).queries[0] in asked(16).queries
    assert asked(64).size == 64
