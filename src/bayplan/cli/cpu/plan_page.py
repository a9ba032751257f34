"""A plan as people read it: the machine with its owners, who has what and why, the pools, and who was refused."""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from bayplan.cli.cpu.broken_lines import broken
from bayplan.cli.cpu.drawing import Holdings, Line, Mark, draw
from bayplan.cli.cpu.machine_words import amount
from bayplan.cli.printers import columns
from bayplan.node.needs import Role
from bayplan.node.plan import Plan, Pool, Share, blockage, pools, shares
from bayplan.node.reasons import many, policies_words
from bayplan.node.sets import format_list, ids_of

if TYPE_CHECKING:
    from bayplan.cli.cpu.plan_input import Planned
    from bayplan.node.admission import Holding
    from bayplan.node.plan import Blockage, Outcome

_RESERVED, _MORE = Mark("r", "dim"), Mark("+", "reverse")
_LETTERS = [each for each in string.ascii_uppercase + string.ascii_lowercase + string.digits if each != _RESERVED.text]
_STYLES = tuple(f"black on {colour}" for colour in ("cyan", "magenta", "green", "yellow", "blue", "red", "white"))
_BAD = "red"


class Shown(msgspec.Struct, frozen=True):
    """How wide the terminal is, and whether lists stand beside numbers."""

    width: int
    wide: bool = False
    sentences: int = 0
    """How wide sentences and rows may be; 0: as they are, for those who search in them."""


def plan_lines(planned: Planned, shown: Shown) -> list[Line]:
    """The whole page."""
    plan = planned.plan
    marks = _marks(plan)
    sections = [
        draw(plan.machine, width=shown.width, holdings=_holdings(plan, marks)),
        [
            *_plain(broken([policies_words(plan.configuration.policies)], shown.sentences)),
            *_asides(planned, shown.sentences),
        ],
        _table(plan, marks, shown),
        _plain(pool_table(pools(plan.site.managers), wide=shown.wide)),
        *([*_refusal(group, shown)] for group in plan.alike),
        [[Mark(_summary(plan))]],
    ]
    lines: list[Line] = []
    for section in filter(None, sections):
        lines += [*([[]] if lines else []), *section]
    return lines


def _asides(planned: Planned, width: int) -> Iterator[Line]:
    said = [f"assumed: {' '.join(planned.assumed)}"] if planned.assumed else []
    yield from ([Mark(line, "yellow")] for line in broken(said, width))
    if said:
        other = "say otherwise with these flags, or give the kubelet's file: --kubelet-config"
        yield from ([Mark(line, "dim")] for line in broken([other], width))
    yield from ([Mark(line, "yellow")] for line in broken(planned.notes, width))


def _summary(plan: Plan) -> str:
    admitted, refused = len(plan.admitted), len(plan.refused)
    told = f"{many(admitted + refused, 'pod')}: {admitted} admitted, {refused} refused"
    return f"{told}; `bayplan cpu explain` says what would let them in" if refused else told


# --- the map


def _names(plan: Plan) -> dict[str, str]:
    """Those that hold anything, by uid."""
    known = {each.need.uid: each.name for each in plan.admitted}
    return {uid: known.get(uid, f"pod {uid}") for uid in (*known, *plan.others)}


def _marks(plan: Plan) -> dict[str, Mark]:
    """A letter for each pod that has CPUs or devices of its own; when they are used up, one for all others."""
    holding = [
        uid
        for uid in _names(plan)
        if any(each.cpus or each.devices for each in plan.site.managers.holdings(uid).values())
    ]
    letters = [Mark(letter, _STYLES[at % len(_STYLES)]) for at, letter in enumerate(_LETTERS)]
    return {uid: letters[at] if at < len(letters) else _MORE for at, uid in enumerate(holding)}


def _holdings(plan: Plan, marks: dict[str, Mark]) -> Holdings:
    managers, names = plan.site.managers, _names(plan)
    cpus = dict.fromkeys(ids_of(managers.cpu.reserved), _RESERVED)
    devices = {}
    legend = []
    for uid, mark in marks.items():
        held = managers.holdings(uid).values()
        cpus.update(dict.fromkeys((cpu for each in held for cpu in ids_of(each.cpus)), mark))
        devices.update({(name, id_): mark for each in held for name, ids in each.devices.items() for id_ in ids})
        if mark is not _MORE:
            legend.append((mark, names[uid]))
    if more := sum(mark is _MORE for mark in marks.values()):
        legend.append((_MORE, many(more, "other pod")))
    if managers.cpu.reserved:
        legend.append((_RESERVED, "reserved"))
    free = Mark("·", "dim")
    return Holdings(cpus, devices, [*legend, (free, "shared")], free)


# --- who has what


def _table(plan: Plan, marks: dict[str, Mark], shown: Shown) -> list[Line]:
    """A row for each container; where that is too wide, why stands below its row."""
    rows = [row for outcome in plan.outcomes if outcome.admitted for row in _rows(plan, outcome, marks)]
    rows += [row for uid in plan.others for row in _other_rows(plan, uid, marks)]
    if not rows:
        return []
    head = ["", "POD", "CONTAINER", "CPUS", "NUMA", "CORES", "MEMORY", "DEVICES", "WHY"]
    kept = [
        at for at, name in enumerate(head) if name in ("POD", "CONTAINER", "CPUS", "WHY") or any(r[at] for r in rows)
    ]
    whole = columns([[line[at].replace("\n", "; ") for at in kept] for line in (head, *rows)]).splitlines()
    if not shown.sentences or max(map(len, whole)) <= shown.sentences:
        return _plain(whole)
    short = columns([[line[at] for at in kept[:-1]] for line in (head, *rows)]).splitlines()
    lines: list[Line] = [[Mark(short[0])]]
    for text, row in zip(short[1:], rows, strict=True):
        why = broken((f"         {part}" for part in row[-1].splitlines()), shown.sentences)
        lines += [[Mark(text)], *([Mark(line, "dim")] for line in why)]
    return lines


def _rows(plan: Plan, outcome: Outcome, marks: dict[str, Mark]) -> Iterator[list[str]]:
    wanted = outcome.candidate
    mark = marks.get(wanted.need.uid)
    for share in shares(plan, outcome):
        name = share.container if share.role is Role.APP else f"{share.container} ({share.role.value})"
        yield [mark.text if mark else "", wanted.name, name, *_cells(plan, share.held), "\n".join(_why(share))]


def _other_rows(plan: Plan, uid: str, marks: dict[str, Mark]) -> Iterator[list[str]]:
    for container, held in plan.site.managers.holdings(uid).items():
        yield [marks[uid].text, f"pod {uid}", container, *_cells(plan, held), "held before"]


def _cells(plan: Plan, held: Holding) -> list[str]:
    cores = sum(1 for members in plan.machine.topology.cores.values() if members & held.cpus)
    memory = (f"{block.resource} {amount(block.size)}@{format_list(block.nodes)}" for block in held.memory)
    return [
        format_list(held.cpus) or "shared",
        format_list(plan.machine.topology.nodes_of(held.cpus)),
        str(cores or ""),
        ", ".join(memory).replace("memory ", ""),
        ", ".join(id_ for ids in held.devices.values() for id_ in ids),
    ]


def _why(share: Share) -> Iterator[str]:
    yield share.why
    if share.hints:
        affinity = share.held.affinity
        nodes = 0 if affinity is None else affinity.nodes or 0
        where = f"NUMA node{'s' * (nodes.bit_count() > 1)} {format_list(nodes)}" if nodes else "any NUMA node"
        yield f"{where} from the hints: {hints_words(share.hints)}"
        if affinity is not None and not affinity.preferred:
            yield share.decided


def hints_words(hints: Mapping[str, str]) -> str:
    """`cpu 0 or 1; memory anywhere`."""
    return "; ".join(f"{resource} {words}" for resource, words in hints.items())


# --- the pools


def pool_table(found: Sequence[Pool], *, wide: bool = False) -> list[str]:
    """How the CPUs of each NUMA node are divided, and what else is free there."""
    kinds = ("cpus", "reserved", "exclusive", "shared", "free")
    memory = [*dict.fromkeys(name for pool in found for name in pool.memory or ())]
    devices = [*dict.fromkeys(name for pool in found for name in pool.devices)]
    head = [
        "NUMA",
        *map(str.upper, kinds),
        *(f"{name.rpartition('/')[2]} FREE".upper() for name in (*memory, *devices)),
    ]
    rows = [
        [
            str(pool.node),
            *(_cpus(getattr(pool, kind), wide) for kind in kinds),
            *(amount((pool.memory or {}).get(name, 0)) for name in memory),
            *(str(len(pool.devices.get(name, ()))) for name in devices),
        ]
        for pool in found
    ]
    if len(found) > 1:
        sums = [str(sum(getattr(pool, kind).bit_count() for pool in found)) for kind in kinds]
        bytes_ = [amount(sum((pool.memory or {}).get(name, 0) for pool in found)) for name in memory]
        pieces = [str(len({id_ for pool in found for id_ in pool.devices.get(name, ())})) for name in devices]
        rows.append(["all", *sums, *bytes_, *pieces])
    return columns([head, *rows]).splitlines()


def _cpus(cpus: int, wide: bool) -> str:
    return f"{cpus.bit_count()} ({format_list(cpus)})" if wide and cpus else str(cpus.bit_count())


# --- those that were refused


def _refusal(group: Sequence[Outcome], shown: Shown) -> Iterator[Line]:
    yield [Mark(refusal_headline(group), _BAD)]
    lines = (f"  {line}" for line in blockage_lines(blockage(group[0])))
    yield from _plain(broken(lines, shown.sentences))


def refusal_headline(group: Sequence[Outcome]) -> str:
    """Who is refused, and how many alike."""
    first, *others = group
    reason = "" if first.refusal is None else f": {first.refusal.reason}"
    like = f", and so {'is' if len(others) == 1 else 'are'} {len(others)} more like it" if others else ""
    return f"{first.candidate.name} is refused{reason}{like}"


def blockage_lines(found: Blockage) -> Iterator[str]:
    """What keeps a pod out."""
    yield f'{found.manager}{f", container {found.container}" if found.container else ""}: "{found.message}"'
    yield from (f"- {sentence}" for sentence in found.because)
    if found.hints:
        yield f"- NUMA nodes that would do: {hints_words(found.hints)}"


def _plain(lines: Iterable[str]) -> list[Line]:
    return [[Mark(line)] for line in lines]
