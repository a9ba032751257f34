"""The text form of label selectors.

    selector    = [ requirement { "," requirement } ]
    requirement = key | "!" key | key ("=" | "==" | "!=" | ">" | "<") value | key ("in" | "notin") "(" values ")"

White space separates and means nothing else; a value may be empty; `in` and `notin` are operators only after a key.
Source of truth: k8s.io/apimachinery 0.36 pkg/labels, including its messages.
"""

from __future__ import annotations

import functools
import re

from bayplan.model.label_rules import label_key_problems
from bayplan.model.selectors import Operator, Requirement, Selector, SelectorError, quoted, requirement

_TOKEN = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!(),<>])|([^ \t\r\n=!(),<>]+)|\Z)")
_OPERATORS = {
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "=": Operator.EQUALS,
    "==": Operator.DOUBLE_EQUALS,
    "!=": Operator.NOT_EQUALS,
    ">": Operator.GREATER_THAN,
    "<": Operator.LESS_THAN,
}
_END = ""


@functools.lru_cache(maxsize=1024)
def parse_selector(text: str) -> Selector:
    """The selector that `text` names. Raises SelectorError."""
    return _Parser(text).selector()


class _Parser:
    """Tokens, and how far they are read. A token is its text and whether it is a word; the last one is the end."""

    def __init__(self, text: str) -> None:
        self._tokens = [(match[1] or match[2] or _END, match[2] is not None) for match in _TOKEN.finditer(text)]
        if self._tokens[-1][0]:
            self._tokens.append((_END, False))
        self._next = 0

    def _peek(self) -> tuple[str, bool]:
        return self._tokens[self._next]

    def _take(self) -> tuple[str, bool]:
        self._next += 1
        return self._tokens[self._next - 1]

    def selector(self) -> Selector:
        found: list[Requirement] = []
        while True:
            text, is_word = self._peek()
            if text == _END:
                return Selector(found)
            if not is_word and text != "!":
                raise SelectorError(f"found '{text}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error.message}") from error
            text, _ = self._take()
            if text == _END:
                return Selector(found)
            if text != ",":
                raise SelectorError(f"found '{text}', expected: ',' or 'end of string'")
            text, is_word = self._peek()
            if not is_word and text != "!":
                raise SelectorError(f"found '{text}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        key, is_word = self._take()
        negated = not is_word and key == "!"
        if negated:
            key, is_word = self._take()
        if not is_word:
            raise SelectorError(f"found '{key}', expected: identifier")
        if problems := label_key_problems(key):
            raise SelectorError(f"<nil>: Invalid value: {quoted(key)}: {'; '.join(problems)}")
        if negated:
            return requirement(key, Operator.DOES_NOT_EXIST, [])
        if self._peek()[0] in (_END, ","):
            return requirement(key, Operator.EXISTS, [])
        text, _ = self._take()
        operator = _OPERATORS.get(text)
        if operator is None:
            raise SelectorError(f"found '{text}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._set() if operator in (Operator.IN, Operator.NOT_IN) else {self._value()}
        return requirement(key, operator, sorted(values))

    def _value(self) -> str:
        if self._peek()[0] in (_END, ","):
            return ""
        text, is_word = self._take()
        if not is_word:
            raise SelectorError(f"found '{text}', expected: identifier")
        return text

    def _set(self) -> set[str]:
        text, _ = self._take()
        if text != "(":
            raise SelectorError(f"found '{text}' expected: '('")
        text, is_word = self._peek()
        if not is_word and text not in (",", ")"):
            raise SelectorError(f"found '{text}', expected: ',', ')' or identifier")
        found: set[str] = set()
        last = ","  # an empty value stands before, between or after commas
        while True:
            text, is_word = self._take()
            if is_word:
                found.add(text)
                if (following := self._peek()[0]) not in (",", ")"):
                    raise SelectorError(f"found '{following}', expected: ',' or ')'")
            elif text in (",", ")"):
                if last == ",":
                    found.add("")
                if text == ")":
                    return found
            else:
                raise SelectorError(f"found '{text}', expected: ',', or identifier")
            last = text
