"""Which joins share a store of rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from muntin.operators.joins.shared_join import JoinStore, StoreKey, store_key
from muntin.plan.operators import Join, Node, StreamSchema, inputs


def shareable(roots: Sequence[Node]) -> list[Join]:
    """The joins below some operators that could share a store, each once, left to right."""
    found: dict[Join, None] = {}
    for root in roots:
        if isinstance(root, Join) and store_key(root) is not None:
            found[root] = None
        found |= dict.fromkeys(shareable(inputs(root)))
    return list(found)


def stores_of(
    nodes: Sequence[Join], assigned: Sequence[int], streams: Mapping[str, StreamSchema]
) -> list[JoinStore]:
    """The stores of joins that have numbers; -1 is none."""
    groups: dict[int, list[Join]] = {}
    for node, number in zip(nodes, assigned, strict=True):
        if number >= 0:
            groups.setdefault(number, []).append(node)
    return [_store(groups[number], streams) for number in sorted(groups)]


def assign_stores(
    nodes: Sequence[Join],
    alone: Collection[Join],
    seeded: Collection[Join],
    before: Sequence[JoinStore],
    streams: Mapping[str, StreamSchema],
) -> list[JoinStore]:
    """The stores that go on, with joins that leave and come, and further ones.

    Joins of one key share a store if there are at least two. One that has had its own rows so far
    stays ``alone``, and so does one that is ``seeded`` with rows of the past, if it finds no store.
    """
    wanted = set(nodes)
    kept = {id(store): [node for node in store.nodes if node in wanted] for store in before}
    stores = [store for store in before if kept[id(store)]]
    for store in stores:
        store.arrange(kept[id(store)])
    held = {node for store in stores for node in store.nodes}
    fresh: dict[StoreKey, list[Join]] = {}
    for node in nodes:
        key = store_key(node)
        if key is None or node in held or node in alone:
            continue
        home = next((each for each in stores if each.key == key and each.has_room(node)), None)
        if home is None and node in seeded:
            continue
        if home is None:
            fresh.setdefault(key, []).append(node)
        else:
            home.arrange([*home.nodes, node])
    for group in fresh.values():
        stores += _stores(group, streams)
    for store in stores:
        # In the order of the plan, as who restores a snapshot has them.
        held = set(store.nodes)
        store.arrange([node for node in nodes if node in held])
    return stores


def _stores(group: Sequence[Join], streams: Mapping[str, StreamSchema]) -> list[JoinStore]:
    """Stores of joins that no store takes: one, unless they have too many conditions."""
    if len(group) < 2:
        return []
    found = [_store(group[:1], streams)]
    for node in group[1:]:
        if not found[-1].has_room(node):
            found.append(_store([node], streams))
        else:
            found[-1].arrange([*found[-1].nodes, node])
    return found


def _store(nodes: Sequence[Join], streams: Mapping[str, StreamSchema]) -> JoinStore:
    key = store_key(nodes[0])
    assert key is not None
    return JoinStore(key, nodes, streams)
