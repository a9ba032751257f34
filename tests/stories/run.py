"""Running a story on one engine: do, wait, look; a list of what was seen after each step.

The real control plane works at its own pace: what it has not done yet when it first comes to rest is waited for a
while, if the embedded engine has told the same step before. A difference is what stays.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Sequence

import msgspec

from bayplan.model.clock import monotonic
from tests.stories.engines import Answer, Engine
from tests.stories.plain import Roles, states, told
from tests.stories.story import Doc, Step, Story, Until, is_like

_LOOK_EVERY = 0.7
_CALM = 0.8
_MOST_UNREST = 8.0
_PATIENCE = 30.0


class Seen(msgspec.Struct, frozen=True):
    """What was seen after a step."""

    kubectl: list[str]
    objects: Doc
    events: Doc


Judge = Callable[[int, Seen], bool]
"""Whether what was seen after a step, counted from one, is what is expected."""


def _anything(_: int, __: Seen) -> bool:
    return True


class NeverCame(AssertionError):
    """What a step waits for did not come."""


def _brief(item: Doc) -> Doc:
    return {"name": item["metadata"]["name"], **{key: item[key] for key in ("status", "reason") if key in item}}


def _registered(node: str) -> Until:
    return Until(of="Event", like={"reason": "RegisteredNode", "involvedObject": {"name": node}})


class Telling:
    """One story on one engine."""

    def __init__(self, engine: Engine, story: Story, expected: Judge = _anything) -> None:
        self._engine = engine
        self._story = story
        self._expected = expected
        self._roles = Roles()
        self._heard = 0

    def run(self) -> list[Seen]:
        """The whole story."""
        story, engine = self._story, self._engine
        for node in story.nodes:
            engine.add_node(node, story.name)
        engine.must("create", "namespace", story.namespace)
        self._wait(Step(tell="the nodes are known", until=[_registered(node) for node in story.nodes]))
        self._heard = len(self._events())
        seen = [self._step(number, step) for number, step in enumerate(story.steps, 1)]
        engine.kubectl("delete", "namespace", story.namespace, "--wait=false")
        return seen

    def _step(self, number: int, step: Step) -> Seen:
        answers = self._do(step)
        try:
            self._wait(step)
        except NeverCame as never:
            raise NeverCame(f"{never}; kubectl answered {answers}") from None
        objects = self._settled(step.hold)
        end = monotonic() + _PATIENCE
        while True:
            seen = Seen(
                [f"exit {answer.code}: {self._roles.text(answer.text)}" for answer in answers],
                states(objects, self._roles),
                told(events := self._events(), self._heard, self._roles),
            )
            if self._expected(number, seen) or monotonic() > end:
                self._heard = len(events)
                return seen
            objects = self._settled(_LOOK_EVERY)

    def _do(self, step: Step) -> list[Answer]:
        engine, answers = self._engine, []
        here = ("-n", self._story.namespace)
        if step.fail:
            engine.fail(step.fail)
        if step.revive:
            engine.revive(step.revive)
        if step.apply:
            given = "\n---\n".join(json.dumps(each) for each in step.apply)
            answers.append(engine.kubectl(*here, "apply", "-f", "-", given=given))
        answers += [engine.kubectl(*here, *shlex.split(line)) for line in step.kubectl]
        if step.each is not None:
            meant = Until(of=step.each.of, like=step.each.like).among(self._look())
            names = sorted(each["metadata"]["name"] for each in meant)[: step.each.most]
            call = shlex.split(step.each.kubectl)
            answers += [engine.kubectl(*here, *(word.replace("$NAME", name) for word in call)) for name in names]
        return answers

    def _wait(self, step: Step) -> None:
        end = monotonic() + step.within
        while True:
            objects = [*self._look(), *({**event, "kind": "Event"} for event in self._events())]
            missing = [each for each in step.until if not each.holds(objects)]
            if not missing:
                return
            if monotonic() > end:
                kinds = {each.of.partition("/")[0] for each in missing}
                there = json.dumps([_brief(each) for each in objects if each["kind"] in kinds])
                raise NeverCame(f"{self._engine.name}: {step.tell}: waited in vain for {missing}; there is {there}")
            time.sleep(_LOOK_EVERY)

    def _settled(self, hold: float) -> Sequence[Doc]:
        """The objects, once nothing has moved for a moment. What never rests is taken as it is."""
        begin = monotonic()
        before: object = None
        while True:
            objects = self._look()
            self._roles.learn(objects)
            now = (states(objects, self._roles), len(self._events()))
            if now == before and monotonic() > begin + hold:
                return objects
            if monotonic() > begin + hold + _MOST_UNREST:
                return objects
            before = now
            time.sleep(_CALM)

    def _look(self) -> list[Doc]:
        kinds = ",".join(self._story.see)
        text = self._engine.must("get", kinds, "-n", self._story.namespace, "-o", "json")
        return [each for each in json.loads(text)["items"] if self._is_of_the_story(each)]

    def _is_of_the_story(self, item: Doc) -> bool:
        own = {"Namespace": ("name", self._story.namespace), "Node": ("labels", {"story": self._story.name})}
        field, wanted = own.get(item["kind"], ("namespace", self._story.namespace))
        return is_like(item["metadata"].get(field), wanted)

    def _events(self) -> list[Doc]:
        """Those about the story's objects and nodes."""
        mine = self._story.namespace
        return [
            each
            for each in [*self._engine.events]
            if each["metadata"]["namespace"] == mine
            or (each["involvedObject"]["kind"] == "Node" and self._is_mine(each["involvedObject"]["name"]))
        ]

    def _is_mine(self, node: str) -> bool:
        return node.startswith(f"{self._story.name}-")
