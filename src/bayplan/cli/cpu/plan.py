"""`bayplan cpu plan`: who would get which CPUs, memory and devices of a machine, drawn and with the reasons."""

from __future__ import annotations

import shutil
from typing import Any

import click

from bayplan.cli.cpu.broken_lines import text_width
from bayplan.cli.cpu.plan_input import plan_options, planned, wish
from bayplan.cli.invocation import output_option


@click.command()
@plan_options
@output_option("wide", "json", "yaml")
def plan(files: tuple[str, ...], machine: str | None, output: str | None, **flags: Any) -> None:
    """Show which pods would get which CPUs of a machine, and why.

    The pods come in the order of the files, and each is admitted or refused as a kubelet with these flags would.
    Nothing is changed anywhere.

    \b
    bayplan cpu plan -f pods.yaml                              on this machine
    bayplan cpu plan -f pods.yaml --machine dgx-h100 --topology-manager-policy=single-numa-node
    bayplan cpu plan -f pods.yaml --kubelet-config config.yaml --state /var/lib/kubelet/cpu_manager_state
    """
    found = planned(wish(files, machine, flags))
    if output in ("json", "yaml"):
        from bayplan.cli.cpu.plan_document import plan_document
        from bayplan.cli.printers import document

        click.echo(document(plan_document(found), output), nl=False)
        return
    from bayplan.cli.cpu.drawing import show
    from bayplan.cli.cpu.plan_page import Shown, plan_lines

    show(plan_lines(found, Shown(shutil.get_terminal_size().columns, wide=output == "wide", sentences=text_width())))
