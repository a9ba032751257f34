"""What the ledger logs: each event's level, fields and meaning, as docs/ledger-log.md shows them. All are stable.

The calls themselves are plain `log.info("lease acquired", ...)`, where things happen; a test finds every one of them in
the source and compares it with this table.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class Event(NamedTuple):
    """One event: a level, the names of its fields with spaces between, and what it means."""

    level: Literal["debug", "info", "warning", "error"]
    fields: str
    meaning: str


TOPICS: dict[str, dict[str, Event]] = {
    "Recording": {
        "recording started": Event("info", "cluster database pods", "this process writes the ledger from here on"),
        "recording ended": Event("info", "cluster", "it no longer does: it ends, or has lost the lease"),
        "part failed at its end": Event("error", "part why", "while all of them were being ended, for another reason"),
        "change taken": Event("debug", "type kind uid resource_version", "a version of an object was read"),
        "row made": Event("debug", "table uid resource_version", "what was decided of it, a line for each row"),
        "batch stored": Event("debug", "rows", "a transaction was committed"),
        "odd object": Event("warning", "code object what", "a part of an object cannot be read; the rest is recorded"),
        "history is gone": Event(
            "warning", "kind after up_to", "the server no longer had what happened; the present was read anew"
        ),
        "present read anew": Event("info", "kind up_to", "as was asked for (`--anew`), rather than go on from before"),
        "clocks differ": Event("warning", "seconds", "what the ledger stamps itself is the server's time from here on"),
        "clocks agree": Event("warning", "seconds", "they are our own again"),
        "server's time not told": Event("debug", "why", "it is asked again soon"),
        "waiting for the cluster": Event(
            "warning", "why", "it cannot be reached at the start; nothing is recorded until it can"
        ),
        "cluster back": Event("info", "", "it answers"),
        "cluster away": Event("warning", "kind why", "the API server does not answer; it is asked again"),
        "last batch left": Event("warning", "why", "the end came before it was durable; the next run reads it again"),
        "pruned": Event("info", "pod_versions workload_versions events use specs", "what the retention lets go"),
        "cannot prune": Event("warning", "why", "it is tried again in an hour"),
    },
    "Database and spool": {
        "database away": Event("warning", "why spools", "it does not take transactions; batches go to disk or wait"),
        "waiting for the database": Event(
            "warning", "why", "it cannot be reached at the start; nothing is recorded until it can"
        ),
        "database back": Event("info", "", "it takes them again"),
        "cannot write": Event("warning", "code why", "a fault of database or spool, the first of its kind"),
        "spool opened": Event("info", "path batches bytes", "what an earlier run left in it is replayed first"),
        "waiting for the spool": Event("warning", "why", "its file cannot be had; nothing is recorded until it can"),
        "spool free": Event("info", "", "it is ours now"),
        "spool of another past": Event(
            "warning", "path", "its batches do not follow on what the database holds, which is told from where it is"
        ),
        "spool cut": Event("warning", "path at", "its last record was half written, as a crash leaves it"),
        "batch spooled": Event("debug", "rows batches bytes", "a batch waits on disk"),
        "spool shrunk": Event(
            "warning", "path bytes dropped", "it was full: versions between an object's first and last were let go"
        ),
        "spool replayed": Event("info", "batches", "all that waited is in the database"),
    },
    "Listeners": {
        "listener recovered": Event("info", "kind whole", "started at the start, for workloads that are stored"),
        "listener started": Event("info", "kind whole", "a kind of owners turned up and is followed"),
        "listener widened": Event("info", "kind", "restarted, for whole objects"),
        "listener restarted": Event("info", "kind why failures", "it was dead"),
        "listener failed": Event("warning", "kind why", "the next health check starts it again"),
        "listener ended": Event("info", "kind", "nothing of the kind is left"),
        "no devices by claims": Event("debug", "kind why", "the cluster does not have this kind"),
        "synced": Event("debug", "kind objects revision", "the present of a kind is known"),
        "watch interrupted": Event("warning", "kind why again_in", "a watch failed"),
        "watch taken up anew": Event("info", "kind why again_in", "the server closed a watch, or was silent"),
    },
    "Lease": {
        "lease acquired": Event("info", "lease identity", "this process leads"),
        "lease renewed": Event("debug", "lease uid resource_version", "and goes on leading"),
        "lease held": Event("debug", "lease holder uid resource_version", "another process leads"),
        "lease lost": Event("error", "lease holder", "it was not renewed in time; nothing is written from here on"),
        "lease released": Event("info", "lease", "given back, so that the next one need not wait"),
        "lease unreachable": Event("warning", "why", "an attempt failed; the next comes soon"),
        "lease not released": Event("debug", "why", "it runs out by itself"),
    },
    "Finalizers": {
        "finalizer added": Event("debug", "object uid resource_version", "it stays until its last state is stored"),
        "finalizer removed": Event("debug", "object uid resource_version", "its last state is stored"),
        "finalizer outdated": Event(
            "debug", "object uid resource_version why", "the object changed meanwhile; its next version is decided anew"
        ),
        "finalizer not decided": Event("debug", "kind uid why", "the object cannot be read, or has gone"),
        "finalizers not allowed": Event(
            "warning", "kind why", "objects of this kind may not be read, so they get none; told once for each kind"
        ),
        "finalizer not patched": Event("warning", "object uid resource_version why", "it is tried again"),
        "finalizers not taken up": Event(
            "warning", "why", "those of an earlier run could not be looked at; it is tried again"
        ),
        "finalizers not swept": Event("warning", "why", "those of a stuck ledger could not be looked for"),
        "finalizers given up": Event("warning", "objects why", "they were let go although their state is not stored"),
    },
    "Kubelet service": {
        "kubelet service reconciled": Event("info", "writes", "Service or slices were brought in line with the nodes"),
        "kubelet service not reconciled": Event("warning", "why", "the next look tries again"),
        "kubelet service changed meanwhile": Event("debug", "name why", "somebody else wrote; the next look sees it"),
    },
    "Measurements": {
        "measured": Event("debug", "until rows skipped", "utilisation up to this time is stored"),
        "no measurements": Event("warning", "code why hint", "they cannot be had; what is missing is fetched later"),
        "measurements come again": Event("info", "after", "they can be had again"),
        "measurements pruned": Event("debug", "rows", "what was older than its retention went"),
    },
}

EVENTS: dict[str, Event] = {name: event for events in TOPICS.values() for name, event in events.items()}

FIELDS: dict[str, str] = {
    "after": "the revision told last, or the code of the fault that is over",
    "again_in": "the pause before the next attempt",
    "at": "how many bytes of the file count",
    "batches": "batches that wait, or waited",
    "bytes": "the size of the file",
    "cluster": "the cluster's name in the ledger",
    "code": "a code of [the list of errors](errors.md), or of the part that is odd",
    "database": "its URL without the password",
    "dropped": "versions that are lost; a row in `gaps` says which time they are of",
    "events": "rows of `gpu_pods_events`",
    "failures": "how often in a row",
    "hint": "what to do about it",
    "holder": "the identity of the process that leads",
    "identity": "this process: host, process id and start",
    "kind": "resource or kind with its group",
    "lease": "namespace/name",
    "name": "of the object",
    "object": "namespace/name, where need be with its kind",
    "objects": "how many there are",
    "part": "recorder, finalizers, measurements, retention, ...",
    "path": "the spool's file",
    "pod_versions": "rows of `pod_snapshots`",
    "pods": "how many",
    "resource_version": "the object's, at this decision",
    "revision": "the server's",
    "rows": "how many",
    "skipped": "values that belong to no pod, by reason",
    "seconds": "by how much the server's clock is ahead of ours",
    "specs": "rows of `spec_blobs`",
    "spools": "whether there is a spool",
    "table": "of the ledger",
    "type": "ADDED, MODIFIED or DELETED",
    "uid": "the object's",
    "until": "a time, in microseconds",
    "up_to": "the revision that was found",
    "use": "rows of `gpu_use`",
    "what": "which field, and what is wrong with it",
    "whole": "whether whole objects are read, or their metadata alone",
    "why": "the reason, in a sentence",
    "workload_versions": "rows of `workload_snapshots`",
    "writes": "how many",
}
