"""The picture on a terminal: a row a node with a cell a GPU, who waits, what happened; as high as the window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bayplan.cli.display.lines import amount, clock_text, coming_text, percent
from bayplan.cli.display.picture import Cell, Happening, NodeRow, Picture, Waiting
from bayplan.model.ages import age
from bayplan.model.clock import Instant, rfc3339

_COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red", "bright_cyan", "bright_magenta")
_FILLED, _EMPTY = "█", "░"
_BAR = 8
_FRAME = 9  # lines that are not nodes, waiting pods or happenings
_LEAST = 3  # happenings and waiting pods that are shown however small the window


class Teams:
    """A letter and a colour for each team, the same all the time."""

    def __init__(self) -> None:
        self._letters: dict[str, str] = {}

    def letter(self, team: str) -> str:
        """The first letter of its name that no other team has."""
        if team not in self._letters:
            taken = self._letters.values()
            free = (c for c in (*team.upper(), *"ABCDEFGHIJKLMNOPQRSTUVWXYZ") if c.isalpha() and c not in taken)
            self._letters[team] = next(free, "?")
        return self._letters[team]

    def colour(self, team: str) -> str:
        """Its colour."""
        self.letter(team)
        return _COLOURS[[*self._letters].index(team) % len(_COLOURS)]


def screen(picture: Picture, teams: Teams, *, title: str, height: int) -> RenderableType:
    """The whole picture in `height` lines."""
    for team in picture.teams:
        teams.letter(team)
    room = height - _FRAME - bool(picture.scenario)
    room = max(2 * _LEAST, room - (len(picture.nodes) > room - 2 * _LEAST))  # a line says how many more
    shown = picture.nodes[: max(_LEAST, room - 2 * _LEAST)]
    left = room - len(shown)
    waiting = min(len(picture.waiting), max(_LEAST, left // 2))
    parts: list[RenderableType] = [
        _head(picture, title),
        *([_scenario(picture)] if picture.scenario else []),
        _legend(picture.teams, teams),
        _nodes(shown, len(picture.nodes), teams),
        _phases(picture.words),
        _queue(picture.waiting, waiting, picture.at),
        _events(picture.happenings[-max(_LEAST, left - waiting) :]),
    ]
    return Group(*parts)


def _head(picture: Picture, title: str) -> Text:
    ready = sum(node.is_ready for node in picture.nodes)
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append("bayplan", "bold").append(f"  {rfc3339(picture.at)[:10]} {clock_text(picture.at)} UTC  {title}  ")
    text.append(f"nodes {ready}/{len(picture.nodes)}", "" if ready == len(picture.nodes) else "red")
    text.append(f"  GPUs {amount(picture.held)}/{picture.gpus} ")
    return text.append(percent(picture.held, picture.gpus), "bold")


def _scenario(picture: Picture) -> Text:
    text = Text("scenario ", no_wrap=True, overflow="ellipsis").append(picture.scenario, "bold")
    if picture.last is not None:
        text.append("  last ", "dim").append(coming_text(*picture.last, picture.at))
    if picture.coming:
        told = [coming_text(at, what, picture.at) for at, what in picture.coming]
        text.append("  next ", "dim").append(" · ".join(told))
    return text


def _legend(held: Mapping[str, float], teams: Teams) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    for team, gpus in held.items():
        text.append(f" {teams.letter(team)} ", f"black on {teams.colour(team)}").append(f" {team} {amount(gpus)}  ")
    return text.append("1-9 shares · idle × lost", "dim")


def _nodes(rows: Iterable[NodeRow], count: int, teams: Teams) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("NODE", "ZONE", "GPU"):
        table.add_column(name, no_wrap=True)
    table.add_column("CELLS", no_wrap=True, min_width=15)
    for name in ("CPU", "MEMORY"):
        table.add_column(name, no_wrap=True, min_width=_BAR + 5)
    table.add_column("PODS", no_wrap=True, min_width=4, justify="right")
    table.add_column("STATUS", no_wrap=True, overflow="ellipsis")
    shown = 0
    for row in rows:
        shown += 1
        cells = Text(" ").join(_cell(cell, row, teams) for cell in row.cells)
        state = Text(row.state, "green" if row.state == "Ready" else "red")
        table.add_row(row.name, row.zone, row.model, cells, _bar(row.cpu), _bar(row.memory), str(row.pods), state)
    if shown < count:
        table.add_row(Text(f"{count - shown} more", "dim"))
    return table


def _cell(cell: Cell, row: NodeRow, teams: Teams) -> Text:
    if not cell.team:
        return Text("·", "dim") if row.is_ready else Text("×", "red")
    glyph = teams.letter(cell.team) if cell.of == 1 else str(min(cell.taken, 9))
    return Text(glyph, f"black on {teams.colour(cell.team)}" + ("" if row.is_ready else " strike"))


def _bar(part: float) -> Text:
    filled = min(_BAR, round(part * _BAR))
    colour = "green" if part < 0.7 else "yellow" if part < 0.9 else "red"
    return Text(_FILLED * filled, colour).append(_EMPTY * (_BAR - filled), "dim").append(f"{100 * part:4.0f}%")


def _phases(words: Mapping[str, int]) -> Text:
    text = Text("\npods  ", no_wrap=True, overflow="ellipsis")
    for word, count in words.items():
        text.append(f"{word} ", _colour_of(word)).append(f"{count}  ")
    return text


def _colour_of(word: str) -> str:
    known = {"Running": "green", "Completed": "dim", "Pending": "yellow", "ContainerCreating": "yellow"}
    return known.get(word, "magenta" if word in ("Terminating", "Succeeded") else "red")


def _queue(waiting: tuple[Waiting, ...], most: int, now: Instant) -> Table:
    table = _list(f"\nwaiting {len(waiting)}")
    for one in waiting[:most]:
        table.add_row(age(one.since, now), one.asks, Text(one.pod), Text(one.why, "dim"))
    return table


def _events(happenings: Iterable[Happening]) -> Table:
    table = _list("\nevents")
    for one in reversed([*happenings]):
        times = f" (x{one.count})" if one.count > 1 else ""
        colour = "red" if one.warning else "green"
        message = Text(one.message.replace("\n", " ") + times, "dim")
        table.add_row(clock_text(one.at), Text(one.reason, colour), Text(one.about), message)
    return table


def _list(title: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", expand=True)
    table.add_column(title, no_wrap=True, min_width=8)
    table.add_column("", no_wrap=True, min_width=6, max_width=20)
    table.add_column("", no_wrap=True, overflow="ellipsis", max_width=38)
    table.add_column("", no_wrap=True, overflow="ellipsis", ratio=1)
    return table
