"""The items of one set of partials: itself, its accumulators, and the queries it serves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from muntin.aggregates.algebra import VALUED
from muntin.display import count
from muntin.plan.explain.costs import Costs, used
from muntin.plan.explain.model import Fact, Item, amount, names, spread, window_text
from muntin.plan.nodes import Final, Move, Partials, SharedPlan, Slicing, Technique
from muntin.plan.timeline import MAX_TICK, Timeline
from muntin.queries import BOUNDS


class PartialsItems:
    """Renders sets of partials of a plan, each with at most ``most`` items of a kind below it.

    ``notes`` are sentences for a set of partials, by its number (``Partials.number``).
    """

    def __init__(
        self, costs: Costs, notes: Mapping[int, Sequence[str]], most: int | None = None
    ) -> None:
        self.plan: SharedPlan = costs.plan
        self.costs = costs
        self.notes = notes
        self.most = most
        self._made_of: dict[int, list[int]] = {}
        self._reasons: dict[int, tuple[tuple[str, ...], str]] = {}
        for place, node in enumerate(self.plan.partials):
            feeder = node.finer if node.twin is None else node.twin
            if feeder is not None:
                self._made_of.setdefault(feeder, []).append(place)

    def item(self, place: int, sources: tuple[str, ...]) -> Item:
        """One set of partials, fed by its slicing and perhaps by a finer set."""
        node = self.plan.partials[place]
        identity = f"partials-{place + 1}"
        finals = self.costs.served(place)
        told = len({final.predicate for final in finals}) > 1
        return Item(
            identity,
            "partials",
            f"partials {place + 1}",
            self._facts(place, node, finals, told),
            tuple(self.notes.get(node.number, ())),
            sources,
            self._accumulators(place, node, identity) + self._finals(place, identity, told),
        )

    def _facts(
        self, place: int, node: Partials, finals: Sequence[Final], told: bool
    ) -> tuple[Fact, ...]:
        groups = tuple(bound.key for bound in node.grouping)
        tables = tuple(join.table for join in self.plan.relations[node.relation].joins)
        finer = None if node.finer is None else node.finer + 1
        where = str(node.selection) if told else ""
        if not told and finals and finals[0].predicate is not None:
            where = f"where {finals[0].predicate.key}"
        operations = self.costs.of_partials(place)
        work = "" if operations is None else f"about {amount(operations)} operations/s"
        served = tuple(final.name for final in finals)
        return (
            Fact("number", node.number),
            Fact("queries", served),
            Fact("slices", f"slicing-{node.slicing + 1}", self._over(node)),
            Fact("groups", groups, f"by {', '.join(groups)}" if groups else ""),
            Fact("rolled_up_from", finer and f"partials-{finer}", _rolled_up(finer)),
            *twin_facts(self.plan, node),
            *self._combined(node),
            *_home(node),
            *(_spread(node) if self.plan.spreads else ()),
            Fact("joined_with", tables, f"joined with {', '.join(tables)}" if tables else ""),
            Fact("selection", where.removeprefix("where ") or None, where),
            Fact("predicates", node.selection.members),
            Fact("accumulators", len(node.accumulators)),
            Fact("operations_per_second", operations, work, aside=True),
        )

    def _over(self, node: Partials) -> str:
        """Whose slices partials are kept for, where that is not clear by itself."""
        if len(self.plan.slicings) == 1:
            return ""
        return f"over {slices_label(self.plan, node.slicing)}"

    def _combined(self, node: Partials) -> tuple[Fact, ...]:
        """What the slices of a tree are put together from."""
        if node.combined is None:
            return ()
        label = combined_label(self.plan, node.combined)
        return (Fact("combined_from", f"slicing-combined-{node.combined + 1}", f"from {label}"),)

    def _accumulators(self, place: int, node: Partials, identity: str) -> tuple[Item, ...]:
        """One item for all accumulators that serve the same queries."""
        needing: list[list[int]] = [[] for _ in node.accumulators]
        for fed in self._served_by(place):
            here = [node.place_of(each) for each in self.plan.partials[fed].accumulators]
            for index in self.costs.finals[fed]:
                for at in used(self.plan.finals[index]):
                    needing[here[at]].append(index)
        serving: dict[tuple[int, ...], list[str]] = {}
        for listed, each in zip(needing, node.accumulators, strict=True):
            serving.setdefault(tuple(sorted(listed)), []).append(str(each))
        items = [
            Item(
                f"{identity}-accumulators-{number}",
                "accumulators",
                ", ".join(kept),
                (
                    Fact("accumulators", tuple(kept)),
                    self._serving(served),
                ),
            )
            for number, (served, kept) in enumerate(serving.items(), start=1)
        ]
        if self.most is None or len(items) <= self.most:
            return tuple(items)
        left = sum(len(kept) for kept in list(serving.values())[self.most :])
        more = Item(f"{identity}-accumulators-more", "accumulators", _more(left, "accumulator"))
        return (*items[: self.most], more)

    def _served_by(self, place: int) -> list[int]:
        """A set of partials, and all that are made of its entries."""
        made = [each for other in self._made_of.get(place, ()) for each in self._served_by(other)]
        return [place, *made]

    def _serving(self, indices: Sequence[int]) -> Fact:
        served = tuple(self.plan.finals[index].name for index in indices)
        return Fact("queries", served, f"serve {names(served)}")

    def _finals(self, place: int, identity: str, told: bool) -> tuple[Item, ...]:
        """The queries, one by one; many of them by families."""
        served = self.costs.finals[place]
        if self.most is None or len(served) <= self.most:
            return tuple(self._final(index, identity, told) for index in served)
        families: dict[int, list[int]] = {}
        for index in served:
            families.setdefault(self.plan.families[index], []).append(index)
        items = [
            self._final(members[0], identity, told)
            if len(members) == 1
            else self._family(members, identity)
            for members in list(families.values())[: self.most]
        ]
        left = sum(len(members) for members in list(families.values())[self.most :])
        if left:
            label = _more(left, "query")
            items.append(Item(f"{identity}-finals-more", "more", label, sources=(identity,)))
        return tuple(items)

    def _final(self, index: int, source: str, told: bool) -> Item:
        final = self.plan.finals[index]
        window = final.window
        predicate = None if final.predicate is None else final.predicate.key
        outputs = _columns(final)
        by, reason = self._reason(index)
        return Item(
            f"final-{final.name}",
            "final",
            f"final {final.name}",
            (
                Fact("query", final.name),
                Fact("window", window_text(window), window_text(window)),
                Fact("measure", window.measure),
                Fact("unit", "microseconds" if window.unit == "duration" else window.unit),
                Fact("range", window.range),
                Fact("slide", window.period),
                Fact("phase", window.phase),
                Fact("predicate", predicate, f"where {predicate}" if told and predicate else ""),
                Fact("outputs", outputs, f"gives {', '.join(outputs)}"),
                Fact("family", self.plan.families[index]),
                Fact("techniques", by),
                Fact("why", reason, reason, aside=True),
            ),
            sources=(source,),
        )

    def _reason(self, index: int) -> tuple[tuple[str, ...], str]:
        """The techniques of a query and why, the same for all of its family."""
        family, final = self.plan.families[index], self.plan.finals[index]
        if family not in self._reasons:
            by = dict.fromkeys(each.name for each in techniques(self.plan, final))
            self._reasons[family] = tuple(by), why(self.plan, final)
        return self._reasons[family]

    def _family(self, members: Sequence[int], source: str) -> Item:
        """Queries that differ in window and predicate only, in one item."""
        finals = [self.plan.finals[index] for index in members]
        windows = [final.window for final in finals]
        served = tuple(final.name for final in finals)
        predicates = len({final.predicate for final in finals})
        told = count(predicates, "predicate") if predicates > 1 else ""
        outputs = _columns(finals[0])
        by, reason = self._reason(members[0])
        ranges = spread(windows, "range", [each.range for each in windows])
        slides = spread(windows, "slide", [each.period for each in windows])
        return Item(
            f"{source}-family-{self.plan.families[members[0]]}",
            "finals",
            f"finals of {count(len(members), 'query')}",
            (
                Fact("queries", served, names(served)),
                Fact("ranges", ranges, ranges),
                Fact("slides", slides, slides),
                Fact("predicates", predicates, told),
                Fact("outputs", outputs, f"gives {', '.join(outputs)}"),
                Fact("techniques", by),
                Fact("why", reason, reason, aside=True),
            ),
            sources=(source,),
        )


def _columns(final: Final) -> tuple[str, ...]:
    """What a query gives; the bounds of its windows only where it names them itself."""
    named = final.query.bounds != BOUNDS
    return final.query.columns[0 if named else len(BOUNDS) :]


def slices_label(plan: SharedPlan, place: int) -> str:
    """What a slicing is called: numbered where there are several."""
    return "slices" if len(plan.slicings) == 1 else f"slices {place + 1}"


def _home(node: Partials) -> tuple[Fact, ...]:
    """The bucket of partials without groups, where they are placed on some."""
    return () if node.home is None else (Fact("bucket", node.home, f"in bucket {node.home}"),)


def _spread(node: Partials) -> tuple[Fact, ...]:
    """Where the values of partials without groups lie, and why."""
    if node.grouping:
        return ()
    valued = [each for each in node.accumulators if each.part.kind in VALUED]
    spread = tuple(str(each.plain) for each in valued if each.is_spread)
    stay = tuple(str(each) for each in valued if not each.is_spread)
    facts = []
    if spread:
        adds = {"set": "counts and sums are added up", "runs": "the best of all are chosen"}
        kinds = dict.fromkeys(each.part.kind for each in valued if each.is_spread)
        how = " and ".join(adds[kind] for kind in kinds)
        text = f"values of {_named(spread)} lie in all buckets, by their hash: {how} on the driver"
        facts.append(Fact("spread", spread, text, aside=True))
    if stay:
        why = "answers need all values of a window in one place"
        text = f"values of {_named(stay)} lie in bucket {node.home}: {why}"
        facts.append(Fact("in_one_bucket", stay, text, aside=True))
    return tuple(facts)


def combined_label(plan: SharedPlan, place: int) -> str:
    """What a set of combined slices is called: numbered where there are several."""
    return "combined slices" if len(plan.combined) == 1 else f"combined slices {place + 1}"


def slicing_column(slicing: Slicing) -> str:
    """What a slicing cuts."""
    return "rows" if slicing.measure == "rows" else slicing.timeline.column


def _more(left: int, noun: str) -> str:
    return f"and {count(left, noun).replace(' ', ' more ', 1)}"


def _rolled_up(finer: int | None) -> str:
    return "" if finer is None else f"rolled up from partials {finer}"


_NAMED = 4


def techniques(plan: SharedPlan, final: Final) -> dict[Technique, tuple[str, ...]]:
    """The techniques of a query, and the accumulators that each is for."""
    accumulators = plan.partials[final.partials].accumulators
    found: dict[Technique, dict[str, None]] = {}
    for index, _, technique in final.reads:
        found.setdefault(technique, {})[str(accumulators[index])] = None
    return {technique: tuple(listed) for technique, listed in found.items()}


def why(plan: SharedPlan, final: Final) -> str:
    """Why a query's windows are made as they are, in a sentence."""
    found = techniques(plan, final)
    if not found:
        return "nothing to assemble: the groups of a window are its answer"
    said: dict[tuple[str, str], list[str]] = {}
    for technique, kept in found.items():
        over = " over its own slices" if technique.is_own else ""
        said.setdefault((f"{technique.name}{over}", technique.why), []).extend(kept)
    return "by " + "; ".join(
        f"{name} for {_named(kept)} ({reason})" for (name, reason), kept in said.items()
    )


def _named(kept: Sequence[str]) -> str:
    shown, left = ", ".join(kept[:_NAMED]), len(kept) - _NAMED
    return shown if left <= 0 else f"{shown} and {left:,} more"


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moves_facts(plan: SharedPlan) -> tuple[Fact, ...]:
    """The moves that a plan remembers: all for machines, the last for people."""
    if not plan.moves:
        return ()
    told = tuple(_told(move, plan.timeline) for move in plan.moves)
    more = len(told) - 1
    text = told[-1] if not more else f"{told[-1]} ({count(more, 'move')} before)"
    return (Fact("moves", told, text, aside=True),)


def twin_facts(plan: SharedPlan, node: Partials) -> tuple[Fact, ...]:
    """What takes over from a set of partials, and when."""
    if node.twin is None:
        return ()
    host = node.twin + 1
    when = "once its windows that are open are over"
    if node.since is not None and node.since >= -MAX_TICK:
        when = f"once windows from {_time(node.since, plan.timeline)} and before are over"
    return (
        Fact("fed_by", f"partials-{host}", f"fed by partials {host}"),
        Fact("taken_over", when, f"partials {host} take over {when}", aside=True),
    )


def _told(move: Move, timeline: Timeline) -> str:
    when = "with the next batch" if move.at is None else f"at {_time(move.at, timeline)}"
    return f"{names(move.queries)} moved {when}: {move.why}"


def _time(tick: int, timeline: Timeline) -> str:
    """An event time as people write it."""
    if tick < -MAX_TICK:
        return "the start"
    if timeline.plain:
        return f"{tick:,}"
    try:
        return (_EPOCH + timedelta(microseconds=tick)).replace(tzinfo=None).isoformat(" ")
    except OverflowError:
        return f"{tick:,} µs"
