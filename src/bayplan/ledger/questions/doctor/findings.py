"""The findings of `bayplan ledger doctor`: stable codes, what each means, what cures it. docs/ledger.md lists them."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

Level = Literal["error", "warning"]


class Meaning(NamedTuple):
    """What a code stands for."""

    level: Level
    title: str
    cure: str


CODES: dict[str, Meaning] = {
    "LD001": Meaning(
        "error",
        "The database cannot be reached",
        "Start it, or check host, port and network; the ledger spools meanwhile.",
    ),
    "LD002": Meaning(
        "error", "The database refuses", "Check the URL: the file or database must exist, user and password be right."
    ),
    "LD003": Meaning("error", "The database's schema is not this program's", "bayplan ledger migrate --database URL"),
    "LD004": Meaning("error", "The ledger may not do what it must", "Apply what `bayplan ledger manifest` prints."),
    "LD005": Meaning(
        "error",
        "Nobody has ever recorded this kind",
        "bayplan ledger run --database URL; where it runs, let it list and watch the kind (LD004).",
    ),
    "LD006": Meaning(
        "error",
        "A listener is dead",
        "See that `bayplan ledger run` runs and what it logs; restart it: nothing is lost.",
    ),
    "LD007": Meaning(
        "warning",
        "A pod's owner is not known",
        "Let the ledger list and watch the owner's kind (LD004); else the owner is gone.",
    ),
    "LD008": Meaning(
        "error",
        "A finalizer of the ledger keeps an object",
        "Start the ledger; or bayplan ledger uninstall, which frees all.",
    ),
    "LD009": Meaning(
        "error",
        "The ledger has a pod that the cluster has not",
        "Restart it as `bayplan ledger run --anew`: it compares, and closes the pod.",
    ),
    "LD010": Meaning(
        "error",
        "The cluster has a GPU pod that the ledger has not",
        "Restart it as `bayplan ledger run --anew`: it compares, and takes the pod in.",
    ),
    "LD011": Meaning(
        "error",
        "Ledger and cluster tell different things of a pod",
        "Restart it as `bayplan ledger run --anew`: it compares, and the cluster's word counts.",
    ),
    "LD012": Meaning(
        "warning",
        "States were lost",
        "Nothing brings them back; a larger spool, or a ledger that is down for less time, helps.",
    ),
    "LD013": Meaning(
        "error",
        "Rows contradict each other",
        "Report it, with the rows: sums over this pod are wrong until it is closed.",
    ),
    "LD014": Meaning(
        "warning", "The cluster cannot be asked", "Check --kubeconfig and --context; half of the checks need it."
    ),
    "LD015": Meaning(
        "warning",
        "Nobody records a cluster into this file any more",
        "None for a `bayplan up` that has ended; for a cluster that goes on, `bayplan ledger run` with this database.",
    ),
}


class Finding(msgspec.Struct, frozen=True):
    """Something that is wrong."""

    code: str
    subject: str
    """Which database, kind, pod."""
    what: str
    cure: str = ""

    @property
    def meaning(self) -> Meaning:
        """What its code stands for."""
        return CODES[self.code]

    @property
    def remedy(self) -> str:
        """What to do: its own cure, or that of its code."""
        return self.cure or self.meaning.cure


class Report(msgspec.Struct, frozen=True):
    """What an examination found."""

    findings: tuple[Finding, ...]
    checked: tuple[str, ...]
    """What was looked at."""
    skipped: tuple[str, ...] = ()
    """What could not be, and why."""

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong for certain; warnings are allowed."""
        return all(each.meaning.level != "error" for each in self.findings)
