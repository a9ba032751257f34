"""The exporter: what nodes show, as Prometheus metrics, and the routes by which a descheduler talks back.

    GET  /metrics        node_cpu_usage_ratio and the others, by node
    GET  /health         which engine, whether it can be reached, how VMs stand, bind-to-observed latency
    POST /refresh        ask the cluster anew
    POST /feedback       {"migrations": [{"vm_id", "from_node", "to_node"}]}: wishes, and what came of each
    GET  /feedback       wished against chosen, so far
    GET  /scenario       nodes and VMs as they stand;   POST /scenario  take others
    GET  /nodes/NAME     one node

A scrape reads what is in memory: it asks no API, and costs as much as there are VMs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from bayplan.model.errors import BayplanError, TemporaryError
from bayplan.service.yaml_lines import FileError
from bayplan.simulate.vms.agreement import Agreement, MoveResult
from bayplan.simulate.vms.exporter_state import ExporterState, NodeUse, NotInScenarioError
from bayplan.simulate.vms.precopy import Transfer, timeline
from bayplan.simulate.vms.reasons import Why
from bayplan.simulate.vms.scenario_file import node_doc, parse_vms, written

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

Doc = dict[str, Any]
T = TypeVar("T")
_METRICS: dict[str, tuple[str, Callable[[NodeUse], float]]] = {
    "node_cpu_usage_ratio": ("CPU that is used, as a share of the node's.", lambda use: use.cpu_usage),
    "node_cpu_pressure_psi": ("CPU pressure, from 0 to 1.", lambda use: use.cpu_pressure),
    "node_memory_usage_ratio": ("Memory that is used, as a share of the node's.", lambda use: use.memory_usage),
    "node_memory_pressure_psi": ("Memory pressure, from 0 to 1.", lambda use: use.memory_pressure),
    "node_vm_count": ("VMs on the node.", lambda use: use.vms),
}
_LOOPBACK = ["127.0.0.1", "localhost", "[::1]"]
_LARGEST = 64 << 20


class NodeCollector(Collector):
    """The five gauges, as of the scrape."""

    def __init__(self, state: ExporterState) -> None:
        self._state = state

    def describe(self) -> list[Metric]:
        """Nothing beforehand: the nodes are not known yet."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The metrics as of now."""
        use = self._state.use()
        for name, (text, value) in _METRICS.items():
            family = GaugeMetricFamily(name, text, labels=("node",))
            for node, each in use.items():
                family.add_metric((node,), value(each))
            yield family


class _Wish(msgspec.Struct, forbid_unknown_fields=True):
    vm_id: str
    from_node: str
    to_node: str


class _Feedback(msgspec.Struct, forbid_unknown_fields=True):
    migrations: list[_Wish]


class Exporter:
    """The routes of an ExporterState."""

    def __init__(self, state: ExporterState) -> None:
        self._state = state
        self._registry = CollectorRegistry()
        self._registry.register(NodeCollector(state))

    def app(self) -> Starlette:
        """The exporter as an ASGI application."""
        from starlette.applications import Starlette
        from starlette.middleware import Middleware
        from starlette.middleware.trustedhost import TrustedHostMiddleware
        from starlette.routing import Route

        routes = [
            Route("/metrics", self._metrics),
            Route("/health", _answering(self._health)),
            Route("/refresh", _answering(self._refresh), methods=["POST"]),
            Route("/feedback", _answering(self._agreement)),
            Route("/feedback", _answering(self._feedback), methods=["POST"]),
            Route("/scenario", _answering(self._scenario)),
            Route("/scenario", _answering(self._load), methods=["POST"]),
            Route("/nodes/{name}", _answering(self._node)),
        ]
        # a web page that has this machine's name rebound does not get in
        return Starlette(routes=routes, middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=_LOOPBACK)])

    async def _metrics(self, request: Request) -> Response:
        from prometheus_client.exposition import choose_encoder
        from starlette.responses import Response

        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        text = await asyncio.to_thread(encode, self._registry)
        return Response(text, headers={"content-type": content_type})

    async def _health(self, _: Request) -> Doc:
        pods = self._state.pod_manager
        return {
            "status": "degraded" if pods.away else "ok",
            "engine": pods.engine,
            "reachable": not pods.away,
            "vms": await asyncio.to_thread(self._state.counts),
            "bind_to_observed_p99_seconds": pods.latency(0.99),
        }

    async def _refresh(self, _: Request) -> Doc:
        return {"vms": await asyncio.to_thread(self._state.refresh)}

    async def _agreement(self, _: Request) -> Doc:
        return agreement_doc(self._state.agreement())

    async def _feedback(self, request: Request) -> Doc:
        wishes = msgspec.json.decode(await _body(request), type=_Feedback).migrations
        for each in wishes:  # all of them before the first: an answer that refuses has moved nothing
            await asyncio.to_thread(self._state.check_move, each.vm_id, each.from_node, each.to_node)
        results = [await asyncio.to_thread(self._wish, each) for each in wishes]
        return {"success": all(map(bool, results)), "results": results_docs(self._state, results)}

    def _wish(self, wish: _Wish) -> MoveResult:
        """What came of a wish; also of one that something has come in between of, so that no other's is lost."""
        try:
            return self._state.move_vm(wish.vm_id, wish.from_node, wish.to_node)
        except BayplanError as fault:
            vm = self._state.vms.get(wish.vm_id)
            where = "" if vm is None else vm.scheduled_node
            return MoveResult(wish.to_node, where, Why("", fault.message), vm=wish.vm_id, source=wish.from_node)

    async def _scenario(self, _: Request) -> Doc:
        return await asyncio.to_thread(self._written)

    def _written(self) -> Doc:
        waiting = [vm for vm in self._state.vms.values() if not vm.scheduled_node]
        return written(self._state.nodes.values(), waiting)

    async def _load(self, request: Request) -> Doc:
        nodes = parse_vms("scenario", await _body(request))
        return {"vms": await asyncio.to_thread(self._state.load_scenario, nodes)}

    async def _node(self, request: Request) -> Doc:
        name: str = request.path_params["name"]
        use = self._state.use_of(name)
        values = {metric: value(use) for metric, (_, value) in _METRICS.items()}
        return node_doc(self._state.nodes[name]) | {"metrics": values}


def results_docs(state: ExporterState, results: list[MoveResult]) -> list[Doc]:
    """What came of wishes that were made together: their transfers share the links."""
    vms, shape = state.vms, state.pod_manager.shape
    transfers = [
        Transfer(str(index), each.source, each.chosen, vm.memory_consumption * shape.memory, vm.dirty_rate_mbps)
        for index, each in enumerate(results)
        if each and (vm := vms.get(each.vm)) is not None
    ]
    ends = timeline(transfers, state.pod_manager.network)
    docs = []
    for index, each in enumerate(results):
        end = ends.get(str(index))
        docs.append(
            {
                "vm_id": each.vm,
                "from_node": each.source,
                "wished": each.wished,
                "chosen": each.chosen,
                "success": bool(each),
                "direct": each.direct,
                "why": each.why.text,
                "plugin": each.why.plugin,
                "seconds": None if end is None else round(end.end, 3),
            }
        )
    return docs


def agreement_doc(found: Agreement) -> Doc:
    """Wished against chosen, as a document."""
    return {**msgspec.to_builtins(found), "share": found.share}


async def _body(request: Request) -> bytes:
    """A JSON body. Whoever may not say so, such as another site's form, is kept out by that."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise msgspec.DecodeError("expected content-type application/json")
    if int(request.headers.get("content-length") or 0) > _LARGEST:
        raise msgspec.DecodeError(f"expected at most {_LARGEST >> 20} MiB")
    return await request.body()


def _answering(ask: Callable[[Request], Awaitable[Doc]]) -> Callable[[Request], Awaitable[Response]]:
    """A route that answers with JSON, and with the error and its hint where there is one."""

    async def answer(request: Request) -> Response:
        from starlette.responses import JSONResponse

        try:
            return JSONResponse(await ask(request))
        except msgspec.MsgspecError as fault:
            return JSONResponse({"error": str(fault)}, 400)
        except BayplanError as fault:
            return JSONResponse({"error": fault.message, "hint": fault.hint, "code": fault.code}, _status(fault))

    return answer


def _status(fault: BayplanError) -> int:
    if isinstance(fault, NotInScenarioError):
        return 404
    if isinstance(fault, TemporaryError):
        return 503
    return 400 if isinstance(fault, FileError) else 422
