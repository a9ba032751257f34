"""What a campaign has shown: counts for each shape, every disagreement with both sides' reasons, and the total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from bayplan.conformance.agreement.judging import Verdict

WANTED = 0.999
"""The share of decisions that must be the same."""
MOST_SHOWN = 20
_PLACED_ALIKE = (Verdict.SAME, Verdict.OPEN, Verdict.WORDS)


class Disagreement(msgspec.Struct, frozen=True):
    """One decision on which the two differ, and how to see it again."""

    shape: str
    seed: int
    step: int
    pod: str
    verdict: Verdict
    story: str

    def lines(self) -> Iterator[str]:
        """As a person reads it."""
        yield f"{self.shape} seed {self.seed} step {self.step}, {self.pod}: {self.verdict}"
        yield from (f"  {line}" for line in self.story.splitlines())


class Tally(msgspec.Struct, kw_only=True):
    """The decisions of one shape, counted."""

    shape: str
    seed: int
    parallelism: int = 1
    verdicts: Counter[Verdict] = msgspec.field(default_factory=Counter)
    refused: int = 0
    preempted: int = 0
    seconds: float = 0.0
    silent: bool = False
    """Whether the real scheduler gave no answer at last, which ends a shape: what it does later cannot be told."""
    disagreements: list[Disagreement] = msgspec.field(default_factory=list)

    @property
    def decisions(self) -> int:
        """How many were compared."""
        return self.verdicts.total()

    @property
    def agreed(self) -> int:
        """On how many the two agree: the same place or refusal, and where threads race, any of our best."""
        allowed = _PLACED_ALIKE if self.parallelism == 1 else (*_PLACED_ALIKE, Verdict.BEST)
        return sum(self.verdicts[each] for each in allowed)

    def fall_silent(self, step: int, pod: str, story: str) -> None:
        """Count a decision that never came."""
        self.silent = True
        self.add(Verdict.DIFFERENT, step, pod, story)

    def add(self, verdict: Verdict, step: int, pod: str, story: str) -> None:
        """Count a decision."""
        self.verdicts[verdict] += 1
        races = verdict is Verdict.BEST and self.parallelism > 1
        if verdict not in (Verdict.SAME, Verdict.OPEN) and not races:
            self.disagreements.append(Disagreement(self.shape, self.seed, step, pod, verdict, story))


class Report(msgspec.Struct):
    """All shapes of a campaign, also of one that was cut short."""

    tallies: list[Tally] = msgspec.field(default_factory=list)

    def share(self, *, parallel: bool = False) -> float:
        """The agreement of all shapes with one thread, or of those with several; 1 where nothing was asked."""
        chosen = [each for each in self.tallies if (each.parallelism > 1) == parallel]
        decisions = sum(each.decisions for each in chosen)
        return sum(each.agreed for each in chosen) / decisions if decisions else 1.0

    @property
    def reached(self) -> bool:
        """Whether the agreement is what it must be, and there was any decision to agree on."""
        some = any(each.decisions for each in self.tallies)
        return some and self.share() >= WANTED and self.share(parallel=True) == 1.0

    def document(self) -> dict[str, object]:
        """The report as plain values."""
        return {
            "agreement": self.share(),
            "agreementParallel": self.share(parallel=True),
            "wanted": WANTED,
            "reached": self.reached,
            "shapes": [
                {**msgspec.to_builtins(each), "decisions": each.decisions, "agreed": each.agreed}
                for each in self.tallies
            ],
        }

    def lines(self, most: int = MOST_SHOWN) -> Iterator[str]:
        """The report as a person reads it."""
        found = [each for tally in self.tallies for each in tally.disagreements]
        for disagreement in found[:most]:
            yield from disagreement.lines()
        if len(found) > most:
            yield f"(+{len(found) - most} more)"
        columns = ("decisions", *Verdict, "refused", "preempted", "per s")
        yield "".join((f"{'shape':<16}", *(f"{column:>11}" for column in columns)))
        for each in self.tallies:
            pace = each.decisions / each.seconds if each.seconds else 0.0
            counts = (each.decisions, *(each.verdicts[verdict] for verdict in Verdict), each.refused, each.preempted)
            yield "".join((f"{each.shape:<16}", *(f"{count:>11}" for count in counts), f"{pace:>11.1f}"))
        yield from self._totals()

    def _totals(self) -> Iterator[str]:
        for parallel, what in ((False, "agree with one thread"), (True, "among our best with several threads")):
            chosen = [each for each in self.tallies if (each.parallelism > 1) == parallel]
            if decisions := sum(each.decisions for each in chosen):
                agreed = sum(each.agreed for each in chosen)
                yield f"{what} {agreed}/{decisions} ({100 * agreed / decisions:.3f}%)"
