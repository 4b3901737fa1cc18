"""Which joins share a store of rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from muntin.operators.joins.shared_join import JoinStore, StoreKey, has_room, store_key
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
    homes: Mapping[Join, JoinStore | None],
    before: Sequence[JoinStore],
    streams: Mapping[str, StreamSchema],
) -> list[JoinStore]:
    """The stores that go on, with joins that leave and come, and further ones.

    Joins of one key share a store if there are at least two. One that has had its own rows so far
    stays ``alone``. One that has taken rows of the past has its home where they are, or none.
    """
    wanted = set(nodes)
    held = {id(store): [node for node in store.nodes if node in wanted] for store in before}
    placed = {node for each in held.values() for node in each}
    fresh: dict[StoreKey, list[Join]] = {}
    for node in nodes:
        key = store_key(node)
        if key is None or node in placed or node in alone:
            continue
        able = [homes[node]] if node in homes else [each for each in before if held[id(each)]]
        home = next(
            (
                each
                for each in able
                if each is not None and each.key == key and has_room([*held[id(each)], node])
            ),
            None,
        )
        if home is not None:
            held[id(home)].append(node)
        elif node not in homes:
            fresh.setdefault(key, []).append(node)
    # At once: what who leaves has kept is there for who comes.
    stores = [store for store in before if held[id(store)]]
    for store in stores:
        store.arrange(held[id(store)])
    for group in fresh.values():
        stores += _stores(group, streams)
    for store in stores:
        # In the order of the plan, as who restores a snapshot has them.
        own = set(store.nodes)
        store.arrange([node for node in nodes if node in own])
    return stores


def _stores(group: Sequence[Join], streams: Mapping[str, StreamSchema]) -> list[JoinStore]:
    """Stores of joins that no store takes: one, unless they have too many conditions."""
    if len(group) < 2:
        return []
    found = [_store(group[:1], streams)]
    for node in group[1:]:
        nodes = [*found[-1].nodes, node]
        if has_room(nodes):
            found[-1].arrange(nodes)
        else:
            found.append(_store([node], streams))
    return found


def _store(nodes: Sequence[Join], streams: Mapping[str, StreamSchema]) -> JoinStore:
    key = store_key(nodes[0])
    assert key is not None
    return JoinStore(key, nodes, streams)
