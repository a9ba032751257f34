"""`bayplan ledger manifest`: what runs a ledger in a cluster, for `kubectl apply -f -`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from bayplan.cli.invocation import Invocation

if TYPE_CHECKING:
    from bayplan.ledger.rights import Owner

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_GROUP = re.compile(rf"({_NAME.pattern}(\.{_NAME.pattern})*)?|\*")
_RESOURCE = re.compile(rf"{_NAME.pattern}|\*")


def _namespace(_: click.Context, __: click.Parameter, value: str) -> str:
    if not _NAME.fullmatch(value):
        raise click.BadParameter(f'expected the name of a namespace; got "{value}"')
    return value


def _owners(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> list[Owner]:
    from bayplan.ledger.rights import Owner

    found = []
    for text in (text for value in values for text in value.split(",")):
        group, slash, resource = text.strip().partition("/")
        if not (slash and _GROUP.fullmatch(group) and _RESOURCE.fullmatch(resource)):
            raise click.BadParameter(f'expected GROUP/RESOURCE, such as example.com/trainers; got "{text}"')
        found.append(Owner(group, resource))
    return found


@click.command()
@click.option(
    "-n", "--namespace", default="bayplan", show_default=True, callback=_namespace, help="Where the ledger will run."
)
@click.option("--image", metavar="IMAGE", help="Image that runs bayplan.  [default: bayplan:VERSION]")
@click.option("--finalizers", is_flag=True, help="GPU pods stay until their last state is stored.")
@click.option("--kubelet-service", is_flag=True, help="Keep a Service with all kubelets in kube-system.")
@click.option(
    "--owners",
    multiple=True,
    metavar="GROUP/RESOURCE,...",
    callback=_owners,
    help="More kinds of workloads to follow, such as example.com/trainers; */* is every kind. Repeatable.",
)
@click.pass_obj
def manifest(
    invocation: Invocation,
    namespace: str,
    image: str | None,
    finalizers: bool,
    kubelet_service: bool,
    owners: list[Owner],
) -> None:
    """Print what runs a ledger in a cluster: an account with no right too many, and two replicas.

    The database's URL is taken from a Secret; other settings of the section ledger are those that hold here.

    \b
    kubectl create namespace bayplan
    kubectl -n bayplan create secret generic bayplan-ledger --from-literal=database=postgresql://...
    bayplan ledger manifest | kubectl apply -f -
    """
    import bayplan
    from bayplan.cli.printers import document
    from bayplan.ledger.manifest import manifest as objects
    from bayplan.ledger.rights import OWNERS, needs

    resolved = invocation.settings()
    if resolved.origins["ledger.lease_namespace"] == "default":
        invocation.give("ledger.lease_namespace", namespace, "--namespace")
    for given, setting in ((finalizers, "finalizers"), (kubelet_service, "kubelet_service")):
        if given:
            invocation.give(f"ledger.{setting}", "on", f"--{setting.replace('_', '-')}")
    settings = invocation.settings().settings.ledger
    if settings.finalizers == "on" and any("*" in owner for owner in owners):
        raise click.UsageError("finalizers are written to workloads: with them, name the kinds in --owners, without *")
    lines = needs(settings, (*OWNERS, *owners))
    found = objects(lines, settings, namespace, image or f"bayplan:{bayplan.__version__}")
    click.echo("---\n".join(document(each, "yaml") for each in found), nl=False)
