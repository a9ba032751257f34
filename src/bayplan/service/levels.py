"""Which room says how much: `node.gpu=trace,ledger=debug,info`.

A room's level covers what lies below it; the longest name that fits wins; a level without a room is for all others.
"""

from __future__ import annotations

import re
from typing import ClassVar

TRACE, DEBUG, INFO, WARNING, ERROR = 5, 10, 20, 30, 40  # the numbers of the standard library, and one below them
LEVELS = {"trace": TRACE, "debug": DEBUG, "info": INFO, "warning": WARNING, "error": ERROR}
NAMES = {number: name for name, number in LEVELS.items()}

_ROOM = re.compile(r"\w+(\.\w+)*", re.ASCII)


class Levels:
    """A level for each room, and one for the rest."""

    __slots__ = ("default", "rooms")
    schema: ClassVar = {"type": "string", "examples": ["info", "node.gpu=trace,ledger=debug,info"]}

    def __init__(self, default: int = INFO, rooms: dict[str, int] | None = None) -> None:
        self.default = default
        self.rooms = rooms or {}

    @classmethod
    def parse(cls, text: str) -> Levels:
        """Read `room=level,room=level,level`. Raises ValueError and says which item is wrong."""
        found: dict[str, int] = {}
        for item in text.split(","):
            room, _, level = item.strip().rpartition("=")
            if level not in LEVELS or ("=" in item and not _ROOM.fullmatch(room)):
                raise ValueError(f'expected room=level or level, a level being {", ".join(LEVELS)}; got "{item}"')
            if room in found:
                raise ValueError(
                    f'expected each room once; got "{room or "the level of all others"}" twice in "{text}"'
                )
            found[room] = LEVELS[level]
        return cls(found.pop("", INFO), found)

    def of(self, room: str) -> int:
        """The level that holds for a room."""
        name = room
        while name:
            if name in self.rooms:
                return self.rooms[name]
            name = name.rpartition(".")[0]
        return self.default

    def lowest(self) -> int:
        """The level of the most talkative room."""
        return min([self.default, *self.rooms.values()])

    def __str__(self) -> str:
        rooms = [f"{room}={NAMES[level]}" for room, level in sorted(self.rooms.items())]
        return ",".join([*rooms, NAMES[self.default]])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Levels) and str(other) == str(self)

    def __hash__(self) -> int:
        return hash(str(self))
