"""Where the cluster is and who we are there: kubeconfig files, or the service account of the pod we run in.

The rules are kubectl's: `--kubeconfig` is one file; KUBECONFIG is a list of files, in which the first to name a thing
wins; then comes the pod's own account, then ~/.kube/config. Paths in a file are relative to the file. Whatever is wrong
is refused here, in one line, before anything is sent.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from bayplan.model.errors import PermanentError
from bayplan.service.yaml_lines import FileError, Located, read_yaml

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_NAMESPACE = "default"


class ConfigError(PermanentError):
    """The kubeconfig cannot be used; the message says where, the hint what to do."""

    code = "BP-K001"


class ClusterEntry(msgspec.Struct, frozen=True, rename="kebab"):
    """A cluster of a kubeconfig: where it is and whom to trust."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class Variable(msgspec.Struct, frozen=True):
    """A variable of an exec plugin's environment."""

    name: str
    value: str


class ExecEntry(msgspec.Struct, frozen=True, rename="camel"):
    """A program that prints credentials."""

    command: str
    api_version: str
    args: tuple[str, ...] | None = None
    env: tuple[Variable, ...] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"


class UserEntry(msgspec.Struct, frozen=True, rename="kebab"):
    """A user of a kubeconfig: how we say who we are."""

    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    username: str = ""
    password: str = ""
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    exec: ExecEntry | None = None
    auth_provider: dict[str, Any] | None = None
    impersonate: str = msgspec.field(name="as", default="")
    impersonate_groups: tuple[str, ...] = msgspec.field(name="as-groups", default=())


class ContextEntry(msgspec.Struct, frozen=True):
    """A context of a kubeconfig: which user, on which cluster, in which namespace."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is needed to speak to one cluster as one user. All paths are absolute."""

    context: str
    cluster: ClusterEntry
    user: UserEntry
    namespace: str = _NAMESPACE
    origin: str = ""
    """Where it was read, for messages."""

    @property
    def server(self) -> str:
        """The API server's address, without a slash at the end."""
        return self.cluster.server.rstrip("/")


class Kubeconfig(msgspec.Struct, frozen=True):
    """What the files say together."""

    origin: str
    clusters: dict[str, ClusterEntry]
    users: dict[str, UserEntry]
    contexts: dict[str, ContextEntry]
    current: str = ""

    def access(self, context: str = "") -> Access:
        """A context, or the current one. Raises ConfigError for what is not there."""
        name = context or self.current
        if not name:
            raise ConfigError(f"{self.origin}: no current context", hint=f"choose one with --context: {self._known()}")
        if name not in self.contexts:
            raise ConfigError(f'{self.origin}: there is no context "{name}"', hint=f"known are {self._known()}")
        entry = self.contexts[name]
        if entry.cluster not in self.clusters:
            raise self._dangling(name, "cluster", entry.cluster, self.clusters)
        if entry.user and entry.user not in self.users:
            raise self._dangling(name, "user", entry.user, self.users)
        return Access(
            context=name,
            cluster=self.clusters[entry.cluster],
            user=self.users.get(entry.user, UserEntry()),
            namespace=entry.namespace or _NAMESPACE,
            origin=self.origin,
        )

    def _known(self) -> str:
        return ", ".join(sorted(self.contexts)) or "none; the file has no contexts"

    def _dangling(self, context: str, what: str, name: str, known: Mapping[str, Any]) -> ConfigError:
        return ConfigError(
            f'{self.origin}: context "{context}" names the {what} "{name}", which is not there',
            hint=f"known {what}s are {', '.join(sorted(known)) or 'none'}",
        )


def find_access(
    kubeconfig: Path | str | None = None,
    context: str = "",
    *,
    env: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Access:
    """The access that a person means who says this much. Raises ConfigError, in one line, with what to do."""
    if not kubeconfig and not context and not env.get("KUBECONFIG") and (service_account / "token").exists():
        return in_cluster(env, service_account)
    return read_kubeconfig(kubeconfig, env=env).access(context)


def in_cluster(env: Mapping[str, str] = os.environ, service_account: Path = SERVICE_ACCOUNT) -> Access:
    """The access that Kubernetes gives to every pod. Its token is renewed while the pod runs, hence a file."""
    host, port = env.get("KUBERNETES_SERVICE_HOST"), env.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ConfigError(
            f"{service_account}: there is a token, but no KUBERNETES_SERVICE_HOST and _PORT",
            hint="outside of a pod, name a kubeconfig with --kubeconfig",
        )
    namespace = service_account / "namespace"
    return Access(
        context="in-cluster",
        cluster=ClusterEntry(
            server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
            certificate_authority=str(service_account / "ca.crt"),
        ),
        user=UserEntry(token_file=str(service_account / "token")),
        namespace=namespace.read_text().strip() if namespace.exists() else _NAMESPACE,
        origin=str(service_account),
    )


def read_kubeconfig(kubeconfig: Path | str | None = None, *, env: Mapping[str, str] = os.environ) -> Kubeconfig:
    """The named file, else those of KUBECONFIG, else ~/.kube/config. Raises ConfigError."""
    if kubeconfig:
        paths, hint = [Path(kubeconfig).expanduser()], "check --kubeconfig"
    elif named := [Path(each) for each in env.get("KUBECONFIG", "").split(os.pathsep) if each]:
        paths, hint = named, "check KUBECONFIG"
    else:
        paths = [Path(env.get("HOME") or Path.home()) / ".kube" / "config"]
        hint = "name a kubeconfig with --kubeconfig or KUBECONFIG, or start a cluster: bayplan up"
    files = [_read_file(path) for path in paths if path.exists()]
    if not files:
        raise ConfigError(f"no kubeconfig: {', '.join(map(str, paths))} is not there", hint=hint)
    merged = files[0]
    for file in files[1:]:
        merged = Kubeconfig(
            f"{merged.origin}{os.pathsep}{file.origin}",
            file.clusters | merged.clusters,
            file.users | merged.users,
            file.contexts | merged.contexts,
            merged.current or file.current,
        )
    return merged


class _Named(msgspec.Struct, frozen=True):
    name: str


class _Cluster(_Named, frozen=True):
    cluster: ClusterEntry | None = None


class _User(_Named, frozen=True):
    user: UserEntry | None = None


class _Context(_Named, frozen=True):
    context: ContextEntry | None = None


class _File(msgspec.Struct, frozen=True, rename="kebab"):
    clusters: tuple[_Cluster, ...] | None = None
    users: tuple[_User, ...] | None = None
    contexts: tuple[_Context, ...] | None = None
    current_context: str | None = None


def _read_file(path: Path) -> Kubeconfig:
    try:
        located = read_yaml(str(path), path.read_bytes())
        file = msgspec.convert(located.value if located.value is not None else {}, _File)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", hint="check the file's path and its permissions") from error
    except FileError as error:
        raise ConfigError(error.message, hint="mend the kubeconfig, or name another one with --kubeconfig") from error
    except msgspec.ValidationError as error:
        raise ConfigError(_shape_fault(located, str(error)), hint="kubectl config view shows what is read") from error
    clusters = {each.name: each.cluster or ClusterEntry() for each in file.clusters or ()}
    users = {each.name: each.user or UserEntry() for each in file.users or ()}
    for number, cluster in enumerate(clusters.values()):
        _check_server(located, f"clusters[{number}].cluster", cluster)
    for number, user in enumerate(users.values()):
        _check_user(located, f"users[{number}].user", user)
    return Kubeconfig(
        str(path),
        {name: _rooted(each, path, "certificate_authority") for name, each in clusters.items()},
        {name: _rooted_user(each, path) for name, each in users.items()},
        {each.name: each.context or ContextEntry() for each in file.contexts or ()},
        file.current_context or "",
    )


def _shape_fault(located: Located, error: str) -> str:
    """msgspec says `Expected X, got Y - at $.path`; we say it at its line."""
    what, _, where = error.partition(" - at `")
    return located.fault(where.strip("`").removeprefix("$").removeprefix("."), what[:1].lower() + what[1:])


def _check_server(located: Located, path: str, cluster: ClusterEntry) -> None:
    try:
        parts = urlsplit(cluster.server)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good:
        fault = located.fault(f"{path}.server", f'expected a URL; got "{cluster.server}"')
        raise ConfigError(fault, hint="write it as https://HOST:PORT")
    _check_base64(located, f"{path}.certificate-authority-data", cluster.certificate_authority_data)


def _check_user(located: Located, path: str, user: UserEntry) -> None:
    if user.auth_provider is not None and not (user.token or user.token_file or user.exec):
        name = user.auth_provider.get("name", "")
        raise ConfigError(
            located.fault(f"{path}.auth-provider", f'the auth provider "{name}" is not supported'),
            hint="use an exec plugin instead, as its makers advise (kubelogin, gke-gcloud-auth-plugin, ...)",
        )
    _check_base64(located, f"{path}.client-certificate-data", user.client_certificate_data)
    _check_base64(located, f"{path}.client-key-data", user.client_key_data)


def _check_base64(located: Located, path: str, text: str) -> None:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ConfigError(
            located.fault(path, f"not base64 ({error})"), hint="copy it anew, or name a file instead"
        ) from error


Entry = TypeVar("Entry", bound=msgspec.Struct)


def _rooted(entry: Entry, file: Path, *fields: str) -> Entry:
    """An entry whose paths start at its file."""
    folder = file.absolute().parent
    values = {name: str(folder / value) for name in fields if (value := getattr(entry, name))}
    return msgspec.structs.replace(entry, **values)


def _rooted_user(user: UserEntry, file: Path) -> UserEntry:
    user = _rooted(user, file, "token_file", "client_certificate", "client_key")
    if user.exec is not None and os.sep in user.exec.command:
        user = msgspec.structs.replace(user, exec=_rooted(user.exec, file, "command"))
    return user
