"""`bayplan logs`: what containers wrote, so far or as they write it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click
import msgspec

from bayplan.cli.names import complete_pods
from bayplan.cli.targets import Target, on_cluster, tell

if TYPE_CHECKING:
    from bayplan.cli.targets import Session
    from bayplan.cluster.objects import Object

_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
_SELECTED_TAIL = 10
"""Lines of each pod when many are asked for, as kubectl has it."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the flags ask for."""

    word: str | None
    second: str | None
    container: str
    all_containers: bool
    previous: bool
    tail: int
    follow: bool
    labels: str
    prefix: bool


class _Source(msgspec.Struct, frozen=True):
    pod: str
    namespace: str
    container: str


@click.command()
@click.argument("word", required=False, metavar="POD | TYPE/NAME", shell_complete=complete_pods)
@click.argument("second", required=False, metavar="[CONTAINER]")
@click.option("-c", "--container", default="", help="Which container of the pod.")
@click.option("--all-containers", is_flag=True, help="All of them.")
@click.option("-p", "--previous", is_flag=True, help="The run before the last restart.")
@click.option("--tail", type=int, default=-1, metavar="N", help="The last N lines; -1 is all (10 with -l).")
@click.option("-f", "--follow", is_flag=True, help="Go on as more is written.")
@click.option("-l", "--selector", "labels", default="", metavar="LABELS", help="Of all pods with these labels.")
@click.option("--prefix", is_flag=True, help="Each line with its pod and container.")
@on_cluster
def logs(target: Target, **flags: Any) -> None:
    """Print what containers wrote.

    \b
    bayplan logs web-0 -c app --tail=20
    bayplan logs deploy/web -f
    bayplan logs -l app=web --prefix
    """
    wish = Wish(**flags)
    if bool(wish.word) == bool(wish.labels):
        raise click.UsageError("expected a pod, TYPE/NAME, or -l")
    target.run(lambda session: _logs(session, wish))


async def _logs(session: Session, wish: Wish) -> None:
    sources = await _sources(session, wish)
    if wish.follow:
        await asyncio.gather(*(_follow(session, source, wish) for source in sources))
        return
    for source in sources:
        text = await session.cluster.logs(
            source.pod, source.namespace, container=source.container, previous=wish.previous, tail=_tail(wish)
        )
        _write(text, source, wish)


def _tail(wish: Wish) -> int | None:
    if wish.tail >= 0:
        return wish.tail
    return _SELECTED_TAIL if wish.labels else None


def _write(text: str, source: _Source, wish: Wish) -> None:
    if wish.prefix:
        text = "".join(f"[pod/{source.pod}/{source.container}] {line}\n" for line in text.splitlines())
    click.echo(text, nl=False)


async def _follow(session: Session, source: _Source, wish: Wish) -> None:
    """One request that lasts; lines are written whole, so that those of several pods do not mix."""
    from bayplan.cluster.live.client import Client
    from bayplan.cluster.live.wire import Lines
    from bayplan.model.clock import SystemClock

    query = {"container": source.container, "follow": "true"}
    query |= {"previous": "true"} if wish.previous else {}
    query |= {} if (tail := _tail(wish)) is None else {"tailLines": str(tail)}
    client, lines = Client(session.cluster.access, clock=SystemClock()), Lines()
    try:
        path = f"/api/v1/namespaces/{source.namespace}/pods/{source.pod}/log"
        async for piece in client.stream(path, query=query):
            for line in lines.feed(piece):
                _write(line.decode(errors="replace") + "\n", source, wish)
    finally:
        await client.close()


async def _sources(session: Session, wish: Wish) -> list[_Source]:
    """Which containers of which pods. Raises NotFound, UsageError."""
    pods = await _pods(session, wish)
    if wish.word and len(pods) > 1:
        tell(f"Found {len(pods)} pods, using pod/{pods[0].name}")
        pods = pods[:1]
    return [_Source(pod.name, pod.namespace, container) for pod in pods for container in _containers(pod, wish)]


def _containers(pod: Object, wish: Wish) -> list[str]:
    spec = pod.doc()["spec"]
    names = [each["name"] for each in spec["containers"]]
    if wish.all_containers:
        return [*(each["name"] for each in spec.get("initContainers") or ()), *names]
    chosen = wish.container or wish.second
    if chosen:
        return [chosen]
    default = (pod.meta.annotations or {}).get(_DEFAULT_CONTAINER, names[0])
    if len(names) > 1:
        tell(f'Defaulted container "{default}" out of: {", ".join(names)}')
    return [default]


async def _pods(session: Session, wish: Wish) -> list[Object]:
    from bayplan.cli.resources import find_kind, list_all
    from bayplan.cluster.kinds import POD
    from bayplan.model.errors import NotFound

    if wish.labels:
        found, _ = await list_all(session, POD, session.namespace, labels=wish.labels)
        if not found:
            tell(f"No resources found in {session.namespace} namespace.")
        return found
    word, slash, name = (wish.word or "").partition("/")
    kind = await find_kind(session, word) if slash else POD
    item = await session.cluster.get(kind, name if slash else word, session.namespace)
    if kind == POD:
        return [item]
    selector = _selector(item)
    found, _ = await list_all(session, POD, session.namespace, labels=selector)
    if not found:
        raise NotFound(f"{wish.word} has no pods", hint=f"bayplan describe {wish.word}")
    return sorted(found, key=lambda pod: ((pod.doc().get("status") or {}).get("phase") != "Running", pod.name))


def _selector(item: Object) -> str:
    """The label selector of a workload or a service, as text."""
    from bayplan.cluster.tables.columns import labels_text, selector_text
    from bayplan.model.errors import BadRequest

    selector = (item.doc().get("spec") or {}).get("selector")
    if not selector:
        raise BadRequest(f"{item.kind.name.lower()}/{item.name} selects no pods", hint="name a pod")
    plain = item.kind.name in ("Service", "ReplicationController")
    return labels_text(selector) if plain else selector_text(selector)
