"""The Table as a whole: its form, and what holds for every kind."""

from __future__ import annotations

import pytest

from bayplan.cluster import kinds
from bayplan.cluster.kinds import KINDS, Kind
from bayplan.cluster.tables.columns import GENERIC
from bayplan.cluster.tables.table import Include, columns_of, table
from bayplan.model.clock import parse_rfc3339

NOW = parse_rfc3339("2026-01-02T12:00:00Z")
LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "n1", "namespace": "kube-node-lease"},
    "spec": {"holderIdentity": "n1"},
}


def test_the_form_of_a_table() -> None:
    told = table(kinds.LEASE, [LEASE], NOW, metadata={"resourceVersion": "7"})
    assert told == {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "7"},
        "columnDefinitions": [
            {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0},
            {"name": "Holder", "type": "string", "format": "", "description": "", "priority": 0},
            {"name": "Age", "type": "string", "format": "", "description": "", "priority": 0},
        ],
        "rows": [
            {
                "cells": ["n1", "n1", "<unknown>"],
                "object": {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": LEASE["metadata"],
                },
            }
        ],
    }


def test_a_row_carries_as_much_of_its_object_as_asked_for() -> None:
    assert table(kinds.LEASE, [LEASE], NOW, Include.OBJECT)["rows"][0]["object"] == LEASE
    assert table(kinds.LEASE, [LEASE], NOW, Include.NONE)["rows"][0]["object"] is None


def test_rows_stand_in_the_order_of_the_objects() -> None:
    named = [{"metadata": {"name": name}} for name in ("b", "a", "c")]
    assert [row["cells"][0] for row in table(kinds.SERVICE_ACCOUNT, named, NOW)["rows"]] == ["b", "a", "c"]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_an_object_that_is_only_a_name_has_a_row(kind: Kind) -> None:
    (row,) = table(kind, [{"metadata": {"name": "x"}}], NOW)["rows"]
    assert all(isinstance(cell, str | int) for cell in row["cells"])


def test_which_kinds_have_no_columns_of_their_own() -> None:
    assert [name for name, kind in KINDS.items() if columns_of(kind) is GENERIC] == [
        "LimitRange",
        "CustomResourceDefinition",
    ]
