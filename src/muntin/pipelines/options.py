"""The options of one statement, read by the rules of its format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from muntin.errors import MuntinError, Problem, did_you_mean
from muntin.pipelines.formats import ADVICE, KAFKA_PREFIX, KAFKA_TOPICS, OPTIONS, Rule
from muntin.pipelines.values import any_text, choice
from muntin.pipelines.variables import substitute
from muntin.queries import CreateSink, CreateSource, Option
from muntin.queries.source import shown


class OptionReader:
    """Reads the options of a statement; what is wrong with them is kept in ``problems``."""

    def __init__(self, statement: CreateSource | CreateSink, variables: Mapping[str, str]) -> None:
        self.statement = statement
        self.variables = variables
        self.kind = "sink" if isinstance(statement, CreateSink) else statement.kind
        self.problems: list[Problem] = []
        self._given = {option.key.lower(): option for option in statement.options}

    def read(self) -> tuple[str, dict[str, Any]]:
        """The format, and every option it has; both are of no use if there are problems."""
        formats = OPTIONS[self.kind]
        form = str(self._value("format", Rule(choice(*formats), required=True)) or "")
        rules = formats.get(form) or _any_format(formats)
        spelled = {name.lower(): name for name in rules}
        for key, option in self._given.items():
            passed = form in ("kafka", "") and key.startswith(KAFKA_PREFIX)
            if key not in spelled and key != "format" and not passed:
                self._unknown(option, form, rules)
        found = {name: self._value(name, rule) for name, rule in rules.items()}
        if form == "kafka":
            found |= self._kafka(spelled)
        return form, found

    def problem(self, message: str, hint: str | None, key: str | None = None) -> None:
        """Record what is wrong with the value of an option, or with the statement."""
        option = self._given.get(key.lower()) if key is not None else None
        self._add(self.statement.start if option is None else option.at, message, hint)

    def _add(self, offset: int, message: str, hint: str | None) -> None:
        name = f"{self.kind} {shown(self.statement.name)}: "
        self.problems.append(self.statement.text.problem(offset, f"{name}{message}", hint))

    def _value(self, name: str, rule: Rule) -> Any:
        option = self._given.get(name.lower())
        if option is None:
            if rule.required:
                formats = ", ".join(OPTIONS[self.kind])
                example = f"one of {formats}" if name == "format" else "..."
                self.problem(f"there is no {name}", f"add {name} = '{example}'")
            return rule.default
        try:
            return rule.read(substitute(option.value, self.variables))
        except MuntinError as error:
            self._add(option.at, f"{name}: {error.message}", error.hint)
            return rule.default

    def _unknown(self, option: Option, form: str, rules: Mapping[str, Rule]) -> None:
        key = option.key.lower()
        near = did_you_mean(option.key, ["format", *rules])
        hint = ADVICE[key] if key in ADVICE else near or f"known options: {', '.join(rules)}"
        what = f"{form} {self.kind}".strip()
        message = f"a {what} has no option {shown(option.key)}"
        self._add(option.start, message, hint)

    def _kafka(self, spelled: Mapping[str, str]) -> dict[str, Any]:
        if not any(name.lower() in self._given for name in KAFKA_TOPICS):
            self.problem("there is no topic", "add subscribe = 'topic'")
        return {
            option.key: self._value(option.key, Rule(any_text))
            for key, option in self._given.items()
            if key.startswith(KAFKA_PREFIX) and key not in spelled
        }


def _any_format(formats: Mapping[str, Mapping[str, Rule]]) -> dict[str, Rule]:
    """The rules of all formats, where it is not known which one is meant."""
    merged = {name: rule for rules in formats.values() for name, rule in rules.items()}
    return {name: replace(rule, required=False) for name, rule in merged.items()}
