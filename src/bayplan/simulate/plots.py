"""Pictures of a run, drawn from its log and nothing else: SVG to look at closely, PNG to paste.

`figures` says what is drawn, as data; `draw` makes files of it. matplotlib comes with the extra `plots`, and is loaded
when something is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from bayplan.model.errors import PermanentError
from bayplan.simulate.eventlog import AnyLine, Began, Created, Gone, Phase, Placed, Sample

FORMATS = ("svg", "png")
_HOUR = 3600.0
_PERCENT = 100.0
_ENDS = ("Succeeded", "Failed")
_BEYOND = 0.03
"""Of the height, what is shown below nothing and above all."""


class PlotsMissingError(PermanentError):
    """matplotlib is not installed."""

    code = "BP-X070"


class Curve(msgspec.Struct, frozen=True):
    """A line: hours and values. Between two points a step keeps the first value."""

    name: str
    hours: tuple[float, ...]
    values: tuple[float, ...]


class Picture(msgspec.Struct, frozen=True):
    """One file."""

    name: str
    title: str
    unit: str
    curves: tuple[Curve, ...]
    most: float | None = None
    """The highest that it can be; None: what the curves come to."""
    until: float = 0.0
    """When the run ended, in hours: up to then each curve keeps its last value."""


def figures(lines: Iterable[AnyLine]) -> list[Picture]:
    """What a run's log shows. Pictures without anything to show are left out."""
    counts, agreement, samples, title = _Counts(), _Agreement(), list[Sample](), ""
    reached = whole = 0.0
    for line in lines:
        reached = line.t
        match line:
            case Began():
                title, whole = f"{line.scenario}, {line.policy}, seed {line.seed}", line.duration
            case Sample():
                samples.append(line)
            case Created() | Placed() | Phase() | Gone():
                counts.take(line)
                agreement.take(line)
    return [
        msgspec.structs.replace(picture, until=(reached or whole) / _HOUR)
        for picture in _pictures(counts, agreement, samples, title)
        if any(each.hours for each in picture.curves)
    ]


def _pictures(counts: _Counts, agreement: _Agreement, samples: Sequence[Sample], title: str) -> list[Picture]:
    hours = tuple(each.t / _HOUR for each in samples)

    def share(name: str, field: str) -> Curve:
        return Curve(name, hours, tuple(_PERCENT * getattr(each, field) for each in samples))

    requested = [
        share(f"{name} requested", field) for name, field in (("CPU", "cpu"), ("memory", "memory"), ("GPU", "gpu"))
    ]
    used = [
        share(f"{name} used", f"used_{field}") for name, field in (("CPU", "cpu"), ("memory", "memory"), ("GPU", "gpu"))
    ]
    shown = [curve for curve in (*requested, *used) if any(curve.values)]
    waiting = Curve("pending", hours, tuple(float(each.pending) for each in samples))
    return [
        Picture("placement", f"Pods by what became of them: {title}", "pods", counts.curves()),
        Picture("utilisation", f"Of what nodes have: {title}", "%", tuple(shown), _PERCENT),
        Picture("fragmentation", f"Free, but of no use: {title}", "%", (share("free", "fragmentation"),), _PERCENT),
        Picture("pending", f"Pods that wait: {title}", "pods", (waiting,)),
        Picture("agreement", f"Placements as wished, of those with a wish: {title}", "%", agreement.curves(), _PERCENT),
    ]  # fmt: skip


class _Counts:
    """Pods that came, that were placed, that ended."""

    def __init__(self) -> None:
        self._points: dict[str, list[tuple[float, int]]] = {"came": [], "placed": [], "ended": []}
        self._ended: set[str] = set()

    def take(self, line: AnyLine) -> None:
        match line:
            case Created():
                self._count("came", line.t)
            case Placed():
                self._count("placed", line.t)
            case Phase(phase=phase, pod=pod) if phase in _ENDS and pod not in self._ended:
                self._ended.add(pod)
                self._count("ended", line.t)
            case Gone(pod=pod) if pod not in self._ended:
                self._count("ended", line.t)
            case Gone(pod=pod):
                self._ended.discard(pod)

    def _count(self, what: str, at: float) -> None:
        points = self._points[what]
        points.append((at / _HOUR, (points[-1][1] if points else 0) + 1))

    def curves(self) -> tuple[Curve, ...]:
        return tuple(
            Curve(name, tuple(hour for hour, _ in points), tuple(float(number) for _, number in points))
            for name, points in self._points.items()
            if points
        )


class _Agreement:
    """The share of placements with a wish that followed it, so far; of several at one instant, after all of them."""

    def __init__(self) -> None:
        self._shares: dict[float, float] = {}
        self._placed = self._followed = 0

    def take(self, line: AnyLine) -> None:
        if isinstance(line, Placed) and line.wished:
            self._placed += 1
            self._followed += line.wished == line.node
            self._shares[line.t / _HOUR] = _PERCENT * self._followed / self._placed

    def curves(self) -> tuple[Curve, ...]:
        return (Curve("as wished", tuple(self._shares), tuple(self._shares.values())),)


def _to_the_end(curve: Curve, until: float) -> tuple[Sequence[float], Sequence[float]]:
    """A curve, which keeps its last value."""
    if not curve.hours or curve.hours[-1] >= until:
        return curve.hours, curve.values
    return (*curve.hours, until), (*curve.values, curve.values[-1])


def _ends(picture: Picture) -> float:
    return max(picture.until, *(each.hours[-1] for each in picture.curves if each.hours))


def _heights(picture: Picture) -> tuple[float, float]:
    """Where the axis begins and ends: a little beyond, or a curve that is nothing or all would lie on the frame."""
    highest = max((value for curve in picture.curves for value in curve.values), default=0.0)
    top = picture.most or highest or 1.0
    return -_BEYOND * top, (1 + _BEYOND) * top


def draw(pictures: Sequence[Picture], folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write each picture in each format; the same pictures give the same bytes. Raises PlotsMissingError, OSError."""
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator
    except ImportError as error:
        hint = "install it with the extra: pip install 'bayplan[plots]'"
        raise PlotsMissingError("drawing needs matplotlib, which is not installed", hint=hint) from error
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    with mpl.rc_context({"svg.hashsalt": "bayplan", "svg.fonttype": "none"}):
        for picture in pictures:
            figure = Figure(figsize=(9, 4), layout="constrained")
            FigureCanvasAgg(figure)
            axes = figure.add_subplot()
            for curve in picture.curves:
                hours, values = _to_the_end(curve, picture.until)
                axes.plot(hours, values, label=curve.name, drawstyle="steps-post", linewidth=1.3)
            axes.set(title=picture.title, xlabel="hours", ylabel=picture.unit)
            axes.set_xlim(0, _ends(picture) or 1)
            axes.set_ylim(*_heights(picture))
            axes.yaxis.set_major_locator(MaxNLocator(integer=True))
            axes.grid(visible=True, alpha=0.3)
            if len(picture.curves) > 1:
                axes.legend(loc="best", fontsize="small")
            for kind in formats:
                path = folder / f"{picture.name}.{kind}"
                figure.savefig(path, metadata={"Date": None} if kind == "svg" else {"Software": None})
                written.append(path)
    return written
