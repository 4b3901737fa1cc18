"""Row plans as trees: each operator with its label, what it keeps and why."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from muntin.display import count
from muntin.plan.explain.formats import FORMATS, Format, check_format
from muntin.plan.explain.model import Fact, Item, amount
from muntin.plan.joined import JoinCall, JoinFinal, JoinSide
from muntin.plan.operators import (
    Difference,
    Distinct,
    Exists,
    Join,
    Keys,
    Label,
    Node,
    Rewriting,
    RowFinal,
    RowPlan,
    Select,
    Union,
    Windowed,
    inputs,
)
from muntin.queries import canonical_text
from muntin.windows import duration_text

_LABELS: dict[Label, str] = {
    "MON": "rows never end",
    "WKS": "rows live equally long",
    "WK": "ends are known at birth",
    "STR": "ends depend on rows to come",
}
_OUTPUTS = {
    "append": "append: each row once, when it is born; any sink takes it",
    "final": "final: each row once, when W has passed its end; any sink takes it",
    "changes": "changes: '+' when a row is born, '-' when it ends early; any sink takes the log, "
    "duckdb and postgres can hold the live table",
}
_SETS = {"all": "EXCEPT ALL", "except": "EXCEPT", "intersect": "INTERSECT"}


def explain_rows(
    plan: RowPlan,
    format: Format = "text",  # noqa: A002
    spread: Mapping[str, tuple[str, ...]] | None = None,
    spanning: Collection[str] = (),
) -> str:
    """A row plan in one of the formats of plans; ``spread``, ``spanning`` as in `RoutedPlan`."""
    check_format(format, FORMATS)
    return FORMATS[format](render_rows(plan, spread, spanning))


def render_rows(
    plan: RowPlan,
    spread: Mapping[str, tuple[str, ...]] | None = None,
    spanning: Collection[str] = (),
) -> Item:
    """A row plan as a tree of items; ids and order do not change from run to run."""
    numbers = _Numbers()
    rows = {final.name: final for final in plan.finals}
    pairs = {final.pairs: rows.pop(final.pairs) for final in plan.joined if final.pairs}
    streams, queries = len(plan.streams), len(rows) + len(plan.joined)
    facts = (
        Fact("queries", queries, f"{count(queries, 'query')} over {count(streams, 'stream')}"),
        Fact("streams", tuple(plan.streams)),
    )
    children = (
        *(
            _final(final, numbers, None if spread is None else spread[final.name])
            for final in rows.values()
        ),
        *(
            _joined(
                final,
                pairs.get(final.pairs),
                numbers,
                None if spread is None else _shares(final.name, spread, spanning),
            )
            for final in plan.joined
        ),
    )
    return Item("plan", "plan", "RowPlan", facts, children=children)


class _Numbers:
    """Ids of operators, in the order they are read."""

    def __init__(self) -> None:
        self.last = 0

    def next(self) -> str:
        self.last += 1
        return f"operator-{self.last}"


def _final(final: RowFinal, numbers: _Numbers, spread: tuple[str, ...] | None) -> Item:
    child = _Operators(final, numbers).item(final.root)
    label = _label(final)
    facts = [
        Fact("label", label, label),
        Fact("output", _kind(final), _shown(final)),
        Fact("streams", tuple(sorted(final.streams)), _moves(final), aside=True),
        *([] if spread is None else [Fact("spread", spread, _spread(spread), aside=True)]),
        *_rewritings(final),
    ]
    return Item(f"query-{final.name}", "final", final.name, tuple(facts), (), (child.id,), (child,))


def _label(final: RowFinal) -> Label:
    """How results end: by their parts, or with INTERNAL never, or as Wstream says all alike."""
    if final.lasts is not None:
        return "WKS"
    return "MON" if final.internal else final.root.label


def _rewritings(final: RowFinal) -> list[Fact]:
    """What was done to the query as it was written, and what was weighed: a sentence each."""
    if not final.rewritings:
        return []
    texts = tuple(_rewriting(each, final) for each in final.rewritings)
    return [Fact(f"rewriting {number}", text, text, aside=True)
            for number, text in enumerate(texts, 1)]  # fmt: skip


def _rewriting(each: Rewriting, final: RowFinal) -> str:
    text = f"{each.rule}: {each.what}"
    if each.cost is None or each.instead is None:
        return text
    plain = final.timeline.plain
    # Ticks are microseconds where times are not plain numbers.
    scale, unit = (1e-3, "tick") if plain else (1e3, "second")
    cost, instead = amount(each.cost * scale), amount(each.instead * scale)
    other = "as written" if each.applied else "otherwise"
    return f"{text}; {cost} µs of CPU per {unit} of event time, {instead} {other} (estimated)"


def _joined(
    final: JoinFinal, rows: RowFinal | None, numbers: _Numbers, spread: Fact | None
) -> Item:
    """An aggregate over a join: its sides, or the operators that make its rows."""
    if rows is None:
        children = tuple(_side(final, side, numbers) for side in final.sides)
        way = "no pairs: per key, each side's answers are multiplied and added over keys"
    else:
        children = (_Operators(rows, numbers).item(rows.root),)
        way = "by pairs: the rows of the join are made, and aggregated at each window end"
        if final.lived:
            way = "by pairs: each row of the join is made once, for all windows that see it"
    computed = ", ".join(call_text(call) for call in final.calls)
    facts = [
        Fact("way", final.way, way),
        Fact("why", final.why, f"because {final.why}", aside=True),
        Fact("computes", computed, f"computes {computed}" if computed else "", aside=True),
        Fact("streams", final.streams, _least(final.streams), aside=True),
        *([] if spread is None else [spread]),
        *([] if rows is None else _rewritings(rows)),
    ]
    ids = tuple(child.id for child in children)
    return Item(f"query-{final.name}", "final", final.name, tuple(facts), (), ids, children)


def _shares(name: str, spread: Mapping[str, tuple[str, ...]], spanning: Collection[str]) -> Fact:
    """What the rows of an aggregate over a join are spread by, and who has whole groups."""
    told = _spread(spread[name])
    if name in spanning and spread[name]:
        told += "; groups span buckets, whose accumulators are merged at the end of each batch"
    return Fact("spread", spread[name], told, aside=True)


def call_text(call: JoinCall) -> str:
    """An aggregate as it was asked for."""
    args = ", ".join(arg.key for arg in call.args) or "*"
    suffix = f" filter ({call.filter.key})" if call.filter is not None else ""
    return f"{call.aggregate.name}({args}){suffix}".replace("`", "")


def _side(final: JoinFinal, side: JoinSide, numbers: _Numbers) -> Item:
    query = side.query
    where = "" if query.where is None else canonical_text(query.where)
    names = [each.name for each in query.group_by]
    nodes = [canonical_text(each.node) for each in query.group_by]
    keys = [node for name, node in zip(names, nodes, strict=True) if name.startswith("k")]
    groups = [node for name, node in zip(names, nodes, strict=True) if name.startswith("g")]
    kept = [canonical_text(each.node) for each in query.select]
    per = f"per slice, {', '.join([*keys, *groups])}"
    facts = [
        Fact("key", tuple(keys), f"on {' and '.join(keys)}"),
        Fact("optional", side.optional, "LEFT JOIN" if side.optional else ""),
        Fact("where", where, f"where {where}" if where else ""),
        Fact("keeps", tuple(kept), f"keeps {', '.join(kept)} {per}", aside=True),
        Fact("query", query.name, f"answered as query {query.name}", aside=True),
    ]
    ticks = query.window.range
    length = f"{ticks:,}" if final.timeline.plain else duration_text(ticks)
    name = f"{side.stream or query.source} [RANGE {length}]"
    return Item(numbers.next(), "side", name, tuple(facts))


def _spread(columns: tuple[str, ...]) -> str:
    if columns:
        return f"spread over buckets by {', '.join(columns)}"
    return (
        "in one bucket: no column is in the keys of all operators, so a single task takes all rows"
    )


def _kind(final: RowFinal) -> str:
    return final.output if final.slide is None and final.show == "rows" else final.show


def _shown(final: RowFinal) -> str:
    when = "at each instant"
    if final.slide is not None:
        when = f"at window ends, every {_length(final.slide, final)}"
    if final.show != "rows":
        what = "entered" if final.show == "istream" else "left"
        return f"what {what} the answer, {when}; any sink takes it"
    if final.slide is not None:
        return f"the answer {when}; any sink takes it"
    return _OUTPUTS[final.output]


def _moves(final: RowFinal) -> str:
    return _least(final.streams)


def _least(streams: Iterable[str]) -> str:
    names = sorted(streams)
    if len(names) == 1:
        return f"moves by the W of {names[0]}"
    return f"moves by the least W of {', '.join(names)}"


def _length(ticks: int, final: RowFinal) -> str:
    return f"{ticks:,}" if final.timeline.plain else duration_text(ticks)


def _tables(leaf: Windowed) -> str:
    """The tables that rows are joined with as they come."""
    joins = () if leaf.relation is None else leaf.relation.joins
    words = {"inner": "JOIN", "left": "LEFT JOIN"}
    return "".join(f" {words[join.kind]} {join.table}" for join in joins)


class _Operators:
    """The operators of one query, as items."""

    def __init__(self, final: RowFinal, numbers: _Numbers) -> None:
        self.final = final
        self.numbers = numbers
        # Those that were told, with all below them: an outer join reads its inputs twice.
        self._told: dict[Node, str] = {}

    def item(self, node: Node) -> Item:
        """An operator and all below it, which is told once."""
        own = self.numbers.next()
        if node in self._told:
            above = self._told[node]
            facts = (*self._facts(node), Fact("same", above, "as above"))
            return Item(own, "operator", self._name(node), facts, sources=(above,))
        if inputs(node):
            self._told[node] = own
        children = tuple(self.item(each) for each in inputs(node))
        keeps = _keeps(node, counts=self.final.counts)
        facts = (
            Fact("label", node.label, node.label),
            *self._facts(node),
            Fact("columns", tuple(node.schema.names)),
            Fact("keeps", keeps, "" if isinstance(node, Windowed) else keeps, aside=True),
        )
        sources = tuple(child.id for child in children)
        return Item(own, "operator", self._name(node), facts, (), sources, children)

    def _name(self, node: Node) -> str:
        if isinstance(node, Windowed):
            if node.retroactive:
                return f"{node.stream} [RETROACTIVE]"
            ever = node.range is None
            window = "UNBOUNDED" if ever else f"RANGE {_length(node.range or 0, self.final)}"
            return f"{node.stream} [{window}]{_tables(node)}"
        if isinstance(node, Difference):
            return _SETS[node.kind]
        if isinstance(node, Exists):
            name = "IN" if node.null_aware else "EXISTS"
            name = f"NOT {name}" if node.negated else name
            return f"{name}, never in its life" if node.whole else name
        names = {Select: "select", Join: "join", Distinct: "DISTINCT", Union: "UNION ALL"}
        return names[type(node)]

    def _facts(self, node: Node) -> list[Fact]:
        facts = []
        if isinstance(node, Windowed | Select) and node.where is not None:
            facts.append(Fact("where", node.where.key, f"where {node.where.key}"))
        if isinstance(node, Join):
            keys = _keys(node.inputs, node.keys)
            facts.append(Fact("key", keys, f"on {' and '.join(keys)}"))
        if isinstance(node, Exists):
            keys = _keys((node.left, node.right), node.keys)
            text = f"by {' and '.join(keys)}" if keys else "whatever the row: one bucket holds all"
            facts.append(Fact("key", keys, text))
        if isinstance(node, Join | Exists) and node.residual is not None:
            facts.append(Fact("condition", node.residual.key, f"if {node.residual.key}"))
        return facts


def _keys(nodes: tuple[Node, ...], keys: tuple[Keys, ...]) -> tuple[str, ...]:
    """The equalities of a key, by names of columns."""
    named = [
        [_column(node, place) for place in places] for node, places in zip(nodes, keys, strict=True)
    ]
    return tuple(" = ".join(names) for names in zip(*named, strict=True))


def _column(node: Node, place: int) -> str:
    """A column by its name, or by its expression where the plan made up the name."""
    if isinstance(node, Windowed):
        column = node.columns[place]
        prefix, _, own = column.name.rpartition(".")
        return f"{prefix}: {column.value.key}" if own.startswith("$") else column.name
    return str(node.schema.field(place).name)


def _keeps(node: Node, *, counts: bool) -> str:
    """What an operator keeps, and why; whether DISTINCT ``counts`` is up to the query."""
    why = _LABELS[node.label]
    if isinstance(node, Windowed) and node.retroactive:
        return "keeps the relation: an update holds for rows that came before it, too"
    if isinstance(node, Windowed | Select | Union):
        return f"keeps nothing: rows pass with their lifetimes; {why}"
    if isinstance(node, Join):
        early = any(each.label == "STR" for each in node.inputs)
        taken = "in order, as W passes them" if early else "on arrival"
        return f"keeps each side's rows until they end, and meets them {taken}; {why}"
    if isinstance(node, Exists):
        return f"keeps left rows and right lifetimes until they end, taken as W passes; {why}"
    if isinstance(node, Distinct):
        if counts or node.label == "STR":
            return "keeps a count per value, taken as W passes; ends depend on rows to come"
        return f"keeps at most two rows per value, taken as W passes; {why}"
    return f"keeps both sides' rows per value until they end, taken as W passes; {why}"
