"""`bayplan cpu topology`: a machine drawn, as a table, or as a file that describes it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import click

from bayplan.cli.cpu.machine_option import chosen_machine, machine_option
from bayplan.cli.invocation import output_option

if TYPE_CHECKING:
    from bayplan.cli.printers import Listing
    from bayplan.node.discovery import Disturbance
    from bayplan.node.machine import Machine


@click.command()
@machine_option
@click.option("--list", "listed", is_flag=True, help="List the machines that have names.")
@click.option("--interrupts", metavar="CPUS", help="List the interrupts and kernel threads that run on these CPUs.")
@output_option("wide", "json", "yaml", "name")
def topology(machine: str | None, listed: bool, interrupts: str | None, output: str | None) -> None:
    """Draw a machine: sockets, NUMA nodes, L3 groups, cores and their threads.

    The threads of a core are written together: 0/64 are CPUs 0 and 64 of one core. `-o yaml` writes the machine as a
    file that --machine reads; `-o wide` lists its CPUs.
    """
    if (machine is not None) + listed + (interrupts is not None) > 1:
        raise click.UsageError("--machine, --list and --interrupts do not go together")
    if listed:
        _print(_machines(), output)
    elif interrupts is not None:
        _print(_disturbances(interrupts), output)
    else:
        _show(chosen_machine(machine), output)


def _print(listing: Listing, output: str | None) -> None:
    from bayplan.cli.printers import render

    click.echo(render(listing, output), nl=False)


def _show(machine: Machine, output: str | None) -> None:
    from bayplan.cli.cpu.drawing import distance_lines, draw, show
    from bayplan.cli.printers import document
    from bayplan.node.machines import as_document, file_text

    if output == "yaml":
        click.echo(file_text(machine), nl=False)
    elif output == "json":
        click.echo(document(as_document(machine), "json"), nl=False)
    elif output == "name":
        click.echo(f"machine/{machine.name}")
    elif output == "wide":
        _print(_cpus(machine), "wide")
    else:
        show([*draw(machine, width=shutil.get_terminal_size().columns), *distance_lines(machine)])


def _cpus(machine: Machine) -> Listing:
    from bayplan.cli.printers import Column, Listing, Row
    from bayplan.node.sets import format_list, ids_of

    def row(*cells: Any) -> Row:
        return Row(cells, f"cpu/{cells[0]}", None)

    cores = machine.topology.cores
    online = [row(*cpu, format_list(cores[cpu.core]), "yes") for cpu in machine.topology.cpus]
    offline = [row(cpu, *["-"] * 5, "no") for cpu in ids_of(machine.offline)]
    heads = ("CPU", "CORE", "SOCKET", "NODE", "L3", "SIBLINGS", "ONLINE")
    return Listing([Column(head) for head in heads], sorted(online + offline, key=lambda each: int(str(each.cells[0]))))


def _machines() -> Listing:
    from bayplan.cli.cpu.machine_words import amount
    from bayplan.cli.printers import Column, Listing, Row
    from bayplan.node.machines import as_document, named, names

    heads = ("NAME", "CPUS", "CORES", "SOCKETS", "NODES", "L3", "MEMORY", "DEVICES", "WHAT")
    rows = []
    for each in map(named, names()):
        parts = each.topology
        counts = (len(parts.cpus), len(parts.cores), len(parts.sockets), len(each.nodes), len(parts.caches))
        memory = amount(sum(node.memory for node in each.nodes))
        cells = (each.name, *counts, memory, len(each.devices), each.description.split("\n")[0])
        rows.append(Row(cells, f"machine/{each.name}", as_document(each)))
    return Listing([Column(head, wide=head == "WHAT") for head in heads], rows)


def _disturbances(cpus: str) -> Listing:
    from bayplan.cli.printers import Column, Listing, Row
    from bayplan.node.discovery import disturbances
    from bayplan.node.sets import format_list, parse_list

    def row(each: Disturbance) -> Row:
        item = {
            "kind": each.kind.value,
            "id": each.id,
            "name": each.name,
            "runs": format_list(each.running),
            "allowed": format_list(each.allowed),
            "count": each.count,
            "movable": each.movable,
        }
        told = "" if each.kind.value == "thread" else each.count
        movable = "yes" if each.movable else "no"
        cells = (each.kind.value, each.id, item["runs"], item["allowed"], told, movable, each.name)
        return Row(cells, f"{each.kind.value}/{each.id}", item)

    heads = ("KIND", "ID", "RUNS ON", "ALLOWED", "COUNT", "MOVABLE", "NAME")
    return Listing([Column(head) for head in heads], [*map(row, disturbances(parse_list(cpus)))])
