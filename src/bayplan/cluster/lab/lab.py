"""The lab: which processes, with which flags, in which order; and the faults that tests make.

The flags are the short set that was seen to work; each that is not self-evident has its reason beside it.
"""

from __future__ import annotations

import base64
import importlib.resources
import json
import tempfile
import urllib.request
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import yaml

from bayplan.cluster.credentials import Authority, kubeconfig, signing_key, token, write_private
from bayplan.cluster.lab.processes import Processes, free_ports
from bayplan.cluster.lab.toolchain import LabUnavailableError, Toolchain, chosen_minor
from bayplan.model.clock import SECOND, SystemClock
from bayplan.service.logging import get_logger

log = get_logger(__name__)

_USERS = {
    "admin": ("bayplan-admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", "system:kube-controller-manager"),
    "scheduler": ("system:kube-scheduler", "system:kube-scheduler"),
    "kwok": ("kwok", "system:masters"),
}
_SCHEDULER: dict[str, Any] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "parallelism": 1,
    "percentageOfNodesToScore": 100,
    "leaderElection": {"leaderElect": False},
    "clientConnection": {"kubeconfig": "scheduler.kubeconfig", "qps": 5000, "burst": 10000},
}
_SPEAKERS = ("kube-controller-manager", "kube-scheduler", "kwok")


class LabOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a lab may have or lack."""

    kubernetes: str = msgspec.field(default_factory=chosen_minor)
    """The minor: `1.36`."""
    controllers: bool = True
    """Whether kube-controller-manager runs."""
    scheduler: bool = True
    kwok: bool = True
    scheduler_config: dict[str, Any] | None = None
    """A KubeSchedulerConfiguration of one's own; the client connection is filled in."""
    apiserver_flags: tuple[str, ...] = ()
    service_accounts: bool = True
    """Whether the ServiceAccount admission plugin is on; it needs the controllers."""


WHOLE = LabOptions()


class Lab:
    """A control plane that lives as long as the `with` block."""

    def __init__(
        self, options: LabOptions = WHOLE, *, name: str = "lab", tell: Callable[[str], None] = log.info
    ) -> None:
        self.options = options
        self.name = name
        self._programs = Toolchain(options.kubernetes).programs(tell)
        self.folder = Path(tempfile.mkdtemp(prefix=f"bayplan-{name}-"))
        self.processes = Processes(self.folder)
        self._etcd, self._peer, self._api, self._kcm, self._sched, self._kwok = free_ports(6)
        self._tokens = {user: token() for user in _USERS}
        self.admin_token = self._tokens["admin"]

    @property
    def url(self) -> str:
        """The API server's address."""
        return f"https://127.0.0.1:{self._api}"

    @property
    def etcd_address(self) -> str:
        """Host and port of etcd's own API."""
        return f"127.0.0.1:{self._etcd}"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.folder / "admin.kubeconfig"

    @property
    def kubectl(self) -> Path:
        """The kubectl of the lab's own version."""
        return self._programs["kubectl"]

    def __enter__(self) -> Lab:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop everything and leave nothing."""
        self.processes.close()

    # --- starting

    def start(self) -> None:
        """Start everything and return once a pod could be run."""
        self._write_files()
        self._start_etcd()
        self._start_apiserver()
        self._prove_version()
        self.start_controllers()

    def _write_files(self) -> None:
        now = SystemClock().now()
        authority = Authority("bayplan-lab", datetime.fromtimestamp(now // SECOND, UTC))
        certificate, key = authority.serving("kube-apiserver")
        files: dict[str, bytes | str] = {
            "ca.crt": authority.pem,
            "apiserver.crt": certificate,
            "apiserver.key": key,
            "sa.key": signing_key(),
            "tokens.csv": "".join(
                f'{self._tokens[user]},{name},{name},"{group}"\n' for user, (name, group) in _USERS.items()
            ),
            "stages.yaml": (importlib.resources.files(__package__) / "stages.yaml").read_bytes(),
            "scheduler.yaml": yaml.safe_dump({**_SCHEDULER, **self._scheduler_config()}),
        }
        for user in _USERS:
            files[f"{user}.kubeconfig"] = kubeconfig(
                f"bayplan-{self.name}", self.url, authority.pem, self._tokens[user]
            )
        for name, content in files.items():
            write_private(self.folder / name, content)

    def _scheduler_config(self) -> dict[str, Any]:
        given = self.options.scheduler_config or {}
        return {**given, "clientConnection": {**_SCHEDULER["clientConnection"], **given.get("clientConnection", {})}}

    def _start_etcd(self) -> None:
        client, peer = f"http://127.0.0.1:{self._etcd}", f"http://127.0.0.1:{self._peer}"
        self._run(
            "etcd",
            "--name=lab",
            "--data-dir=etcd",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=lab={peer}",
            "--unsafe-no-fsync",  # the data lives no longer than the lab
            "--log-level=warn",
        )
        self.processes.await_url("etcd", f"{client}/readyz")

    def _start_apiserver(self) -> None:
        plugins = () if self.options.service_accounts else ("--disable-admission-plugins=ServiceAccount",)
        self._run(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self._etcd}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",  # else it names the machine's own address
            f"--secure-port={self._api}",
            "--tls-cert-file=apiserver.crt",
            "--tls-private-key-file=apiserver.key",
            "--client-ca-file=ca.crt",
            "--token-auth-file=tokens.csv",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.96.0.0/16",
            f"--service-account-issuer={self.url}",
            "--service-account-key-file=sa.key",
            "--service-account-signing-key-file=sa.key",
            "--allow-privileged=true",
            "--shutdown-watch-termination-grace-period=1s",  # else a stop waits a minute for open watches
            *plugins,
            *self.options.apiserver_flags,
        )
        self.processes.await_url("kube-apiserver", f"{self.url}/readyz")

    def _prove_version(self) -> None:
        """Programs that were found may be of another Kubernetes than the one asked for."""
        told = json.loads(self.processes.await_url("kube-apiserver", f"{self.url}/version"))["gitVersion"]
        if not told.startswith(f"v{self.options.kubernetes}."):
            raise LabUnavailableError(
                f"asked for Kubernetes {self.options.kubernetes}, but {self._programs['kube-apiserver']} is {told}",
                hint="unset KUBEBUILDER_ASSETS or take it off PATH, or ask for the version that it is",
            )

    def start_controllers(self) -> None:
        """Start what speaks to the API server, and wait for it."""
        starts = (
            (self.options.controllers, self._start_controller_manager),
            (self.options.scheduler, self._start_scheduler),
            (self.options.kwok, self._start_kwok),
        )
        waits = [start() for wanted, start in starts if wanted]
        for name, url in waits:
            self.processes.await_url(name, url)

    def _start_controller_manager(self) -> tuple[str, str]:
        self._run(
            "kube-controller-manager",
            "--kubeconfig=controller-manager.kubeconfig",
            "--service-account-private-key-file=sa.key",
            "--root-ca-file=ca.crt",
            "--use-service-account-credentials=true",  # without it the controllers may do nothing
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._kcm}",
            "--cert-dir=kcm",
            "--kube-api-qps=1000",
            "--kube-api-burst=2000",
        )
        return "kube-controller-manager", f"https://127.0.0.1:{self._kcm}/healthz"

    def _start_scheduler(self) -> tuple[str, str]:
        self._run(
            "kube-scheduler",
            "--config=scheduler.yaml",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._sched}",
            "--cert-dir=scheduler",
        )
        return "kube-scheduler", f"https://127.0.0.1:{self._sched}/readyz"

    def _start_kwok(self) -> tuple[str, str]:
        self._run(
            "kwok",
            "--kubeconfig=kwok.kubeconfig",
            "--config=stages.yaml",
            "--manage-all-nodes=true",
            "--node-lease-duration-seconds=40",
            f"--server-address=127.0.0.1:{self._kwok}",
        )
        return "kwok", f"http://127.0.0.1:{self._kwok}/readyz"

    def _run(self, name: str, *flags: str) -> None:
        self.processes.start(name, [str(self._programs[name]), *flags])

    # --- asking

    def kubectl_command(self, *arguments: str) -> list[str]:
        """A kubectl call against this lab."""
        return [str(self.kubectl), f"--kubeconfig={self.kubeconfig}", *arguments]

    def etcd(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """A call of etcd's JSON gateway: `/v3/kv/range`, `/v3/kv/compaction`, ..."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._etcd}{path}",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - our own URL
            decoded: dict[str, Any] = json.load(answer)
        return decoded

    def revision(self) -> int:
        """etcd's present revision."""
        return int(self.etcd("/v3/kv/range", {"key": base64.b64encode(b"\0").decode()})["header"]["revision"])

    # --- faults

    def compact(self) -> int:
        """Compact etcd up to now, and make the API server forget its own memory of the past: watches then get 410."""
        revision = self.revision()
        self.etcd("/v3/kv/compaction", {"revision": str(revision), "physical": True})
        self.restart_apiserver()
        return revision

    def restart_apiserver(self, *, kill: bool = True) -> None:
        """Stop the API server and start it again on the same port, and those who speak to it as well.

        After an outage their informers back off for up to a minute; a restart spares the tests that wait.
        """
        self.processes.restart("kube-apiserver", kill=kill)
        self.processes.await_url("kube-apiserver", f"{self.url}/readyz")
        self.restart_speakers()

    def restart_speakers(self, names: Sequence[str] = _SPEAKERS) -> None:
        """Restart controller manager, scheduler and KWOK, as far as they run."""
        for name in names:
            if name in self.processes.names():
                self.processes.stop(name, kill=True)
        self._forget_leases()
        self.start_controllers()

    def _forget_leases(self) -> None:
        """KWOK names itself anew at each start and would wait for its old leases to run out."""
        prefix = b"/registry/leases/kube-node-lease/"
        end = prefix[:-1] + bytes([prefix[-1] + 1])
        key, range_end = (base64.b64encode(each).decode() for each in (prefix, end))
        self.etcd("/v3/kv/deleterange", {"key": key, "range_end": range_end})
