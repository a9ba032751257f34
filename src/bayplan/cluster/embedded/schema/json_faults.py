"""Why a text is not JSON, in the words of Go's encoding/json. Only asked once another parser has refused the text."""

from __future__ import annotations

_SPACE = " \t\r\n"
_DIGITS = "0123456789"
_LITERALS = {"t": "true", "f": "false", "n": "null"}
_END = ""


class _FaultError(Exception):
    """The first character that does not fit, and what was going on."""


def json_fault(text: str) -> str:
    """What Go would say of the text, or an empty string when it finds nothing wrong."""
    scan = _Scan(text)
    try:
        scan.value()
        if scan.skip() != _END:
            scan.fail("after top-level value")
    except _FaultError as fault:
        return str(fault)
    except RecursionError:
        return "exceeded max depth"
    return ""


class _Scan:
    """A walk along the text; each method reads one thing and leaves the position behind it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def skip(self) -> str:
        """The next character that is no space."""
        while self.peek() != _END and self.peek() in _SPACE:
            self.at += 1
        return self.peek()

    def fail(self, context: str) -> None:
        character = self.peek()
        if character == _END:
            raise _FaultError("unexpected end of JSON input")
        raise _FaultError(f"invalid character {_quoted(character)} {context}")

    def value(self) -> None:
        character = self.skip()
        if character == "{":
            self._object()
        elif character == "[":
            self._array()
        elif character == '"':
            self._string()
        elif character in _LITERALS:
            self._literal(_LITERALS[character])
        elif character == "-" or (character != _END and character in _DIGITS):
            self._number()
        else:
            self.fail("looking for beginning of value")

    def _object(self) -> None:
        self.at += 1
        if self.skip() == "}":
            self.at += 1
            return
        while True:
            if self.skip() != '"':
                self.fail("looking for beginning of object key string")
            self._string()
            if self.skip() != ":":
                self.fail("after object key")
            self.at += 1
            self.value()
            if self._ends("}", "after object key:value pair"):
                return

    def _array(self) -> None:
        self.at += 1
        if self.skip() == "]":
            self.at += 1
            return
        while True:
            self.value()
            if self._ends("]", "after array element"):
                return

    def _ends(self, closing: str, context: str) -> bool:
        character = self.skip()
        if character not in (closing, ",") or character == _END:
            self.fail(context)
        self.at += 1
        return character == closing

    def _string(self) -> None:
        self.at += 1
        while (character := self.peek()) != '"':
            if character == _END or character < " ":
                self.fail("in string literal")
            self.at += 1
            if character == "\\":
                self._escape()
        self.at += 1

    def _escape(self) -> None:
        character = self.peek()
        if character == _END or character not in 'bfnrt\\/"u':
            self.fail("in string escape code")
        self.at += 1
        for _ in range(4 if character == "u" else 0):
            if self.peek() == _END or self.peek() not in _DIGITS + "abcdefABCDEF":
                self.fail("in \\u hexadecimal character escape")
            self.at += 1

    def _literal(self, word: str) -> None:
        for expected in word:
            if self.peek() != expected:
                self.fail(f"in literal {word} (expecting {_quoted(expected)})")
            self.at += 1

    def _number(self) -> None:
        if self.peek() == "-":
            self.at += 1
        if self.peek() == "0":
            self.at += 1
        else:
            self._digits("in numeric literal")
        if self.peek() == ".":
            self.at += 1
            self._digits("after decimal point in numeric literal")
        if self.peek() in ("e", "E"):
            self.at += 1
            if self.peek() in ("+", "-"):
                self.at += 1
            self._digits("in exponent of numeric literal")

    def _digits(self, context: str) -> None:
        if self.peek() == _END or self.peek() not in _DIGITS:
            self.fail(context)
        while self.peek() != _END and self.peek() in _DIGITS:
            self.at += 1


def _quoted(character: str) -> str:
    if character == "'":
        return r"'\''"
    if character == '"':
        return "'\"'"
    escapes = {"\n": r"\n", "\t": r"\t", "\r": r"\r", "\\": r"\\"}
    plain = character if character.isprintable() else f"\\x{ord(character):02x}"
    return f"'{escapes.get(character, plain)}'"
