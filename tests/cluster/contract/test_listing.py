"""Contract of `list`: order, selectors, pages that all show one moment."""

from __future__ import annotations

import pytest

from bayplan.cluster.kinds import CONFIG_MAP, DEPLOYMENT, NAMESPACE, NODE, POD
from bayplan.cluster.port import Cluster, Page
from bayplan.model.errors import BadRequest, Expired
from tests.cluster.contract.faces import Face
from tests.cluster.contract.manifests import config_map, pod


def names(page: Page) -> list[str]:
    return [item.name for item in page.items]


async def fill(cluster: Cluster, home: str, *given: str) -> None:
    for name in given:
        await cluster.create(CONFIG_MAP, config_map(name), home)


async def all_pages(cluster: Cluster, home: str, first: Page, limit: int) -> list[Page]:
    pages = [first]
    while pages[-1].next:
        pages.append(await cluster.list(CONFIG_MAP, home, limit=limit, after=pages[-1].next))
    return pages


async def test_objects_come_ordered_by_name(cluster: Cluster, home: str) -> None:
    await fill(cluster, home, "b", "a-1", "a", "a.1", "a0", "10", "9")
    assert names(await cluster.list(CONFIG_MAP, home)) == ["10", "9", "a", "a-1", "a.1", "a0", "b"]


async def test_all_namespaces_come_in_order_too(cluster: Cluster) -> None:
    for namespace in ("zz-last", "aa-first"):
        await cluster.create(NAMESPACE, {"metadata": {"name": namespace}})
        for name in ("b", "a"):
            await cluster.create(CONFIG_MAP, config_map(name, {"order": "tested"}), namespace)
    found = [item.key for item in (await cluster.list(CONFIG_MAP, labels="order=tested")).items]
    assert found == [("aa-first", "a"), ("aa-first", "b"), ("zz-last", "a"), ("zz-last", "b")]


async def test_a_list_is_of_one_kind_and_one_namespace(cluster: Cluster, home: str) -> None:
    await fill(cluster, home, "a")
    await cluster.create(POD, pod("p"), home)
    assert names(await cluster.list(POD, home)) == ["p"]
    assert names(await cluster.list(CONFIG_MAP, "no-such-namespace")) == []


async def test_a_list_tells_the_revision_it_shows(cluster: Cluster, home: str) -> None:
    created = await cluster.create(CONFIG_MAP, config_map("a"), home)
    page = await cluster.list(CONFIG_MAP, home)
    assert int(page.revision) >= int(created.meta.resource_version)
    assert (page.next, page.remaining) == ("", 0)


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        pytest.param("app=web", ["both", "web"], id="equal"),
        pytest.param("app==web", ["both", "web"], id="equal, said twice"),
        pytest.param("app!=web", ["db", "none"], id="not equal also without the label"),
        pytest.param("app in (web, db)", ["both", "db", "web"], id="one of several"),
        pytest.param("app notin (web)", ["db", "none"], id="none of several"),
        pytest.param("tier", ["both"], id="present"),
        pytest.param("!app", ["none"], id="absent"),
        pytest.param("app=web,tier=gold", ["both"], id="all terms must hold"),
        pytest.param("app=", [], id="an empty value is a value"),
        pytest.param("rank>3", ["both"], id="a number above"),
    ],
)
async def test_labels_select(cluster: Cluster, home: str, selector: str, found: list[str]) -> None:
    given = {
        "web": {"app": "web"},
        "db": {"app": "db"},
        "none": {},
        "both": {"app": "web", "tier": "gold", "rank": "4"},
    }
    for name, labels in given.items():
        await cluster.create(CONFIG_MAP, config_map(name, labels), home)
    assert names(await cluster.list(CONFIG_MAP, home, labels=selector)) == found


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        pytest.param("metadata.name=bound", ["bound"], id="the name"),
        pytest.param("metadata.name!=bound", ["free", "host"], id="every other name"),
        pytest.param("spec.nodeName=nowhere", ["bound"], id="pods of a node"),
        pytest.param("spec.nodeName=", ["free", "host"], id="pods without a node"),
        pytest.param("spec.nodeName!=nowhere,status.phase=Pending", ["free", "host"], id="two terms"),
        pytest.param("status.phase=Running", [], id="a phase that no pod is in"),
        pytest.param("spec.schedulerName=nobody,spec.hostNetwork=true", ["host"], id="a flag"),
        pytest.param("spec.nodeName=nowhere,spec.nodeName=elsewhere", [], id="terms that exclude each other"),
    ],
)
async def test_fields_select_pods(cluster: Cluster, home: str, selector: str, found: list[str]) -> None:
    for name in ("free", "bound"):
        await cluster.create(POD, pod(name), home)
    await cluster.create(POD, pod("host", hostNetwork=True), home)
    await cluster.bind("bound", "nowhere", home)
    assert names(await cluster.list(POD, home, fields=selector)) == found


async def test_a_flag_that_was_never_set_is_false(cluster: Cluster) -> None:
    await cluster.create(NODE, {"metadata": {"name": "open", "labels": {"contract": "fields"}}})
    await cluster.create(
        NODE, {"metadata": {"name": "shut", "labels": {"contract": "fields"}}, "spec": {"unschedulable": True}}
    )
    chosen = {
        flag: names(await cluster.list(NODE, labels="contract=fields", fields=f"spec.unschedulable={flag}"))
        for flag in ("true", "false")
    }
    assert chosen == {"true": ["shut"], "false": ["open"]}


async def test_a_pod_of_a_node_is_found_in_all_namespaces(cluster: Cluster, home: str) -> None:
    await cluster.create(NAMESPACE, {"metadata": {"name": "second"}})
    for namespace in (home, "second"):
        await cluster.create(POD, pod("a"), namespace)
        await cluster.bind("a", "some-node", namespace)
    found = await cluster.list(POD, fields="spec.nodeName=some-node")
    assert [item.namespace for item in found.items] == sorted([home, "second"])
    assert names(await cluster.list(POD, home, fields="spec.nodeName=some-node")) == ["a"]


@pytest.mark.parametrize(
    ("labels", "fields", "told"),
    [
        pytest.param("app in web", "", "unable to parse requirement: found 'web' expected: '('", id="no brackets"),
        pytest.param("=x", "", "found '=', expected: !, identifier, or 'end of string'", id="no key"),
        pytest.param("a=b c", "", "found 'c', expected: ',' or 'end of string'", id="two words"),
        pytest.param(
            "", "spec.nodeName", "invalid selector: 'spec.nodeName'; can't understand 'spec.nodeName'", id="bare"
        ),
        pytest.param("", "spec.colour=red", "field label not supported: spec.colour", id="a field nobody selects by"),
    ],
)
async def test_a_selector_that_cannot_be_read_is_refused(cluster: Cluster, labels: str, fields: str, told: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        await cluster.list(POD, labels=labels, fields=fields)
    assert told in refusal.value.message
    with pytest.raises(BadRequest):
        await anext(cluster.watch(POD, labels=labels, fields=fields))


async def test_kinds_without_fields_of_their_own_select_by_name_alone(cluster: Cluster, home: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        await cluster.list(DEPLOYMENT, home, fields="spec.replicas=1")
    assert refusal.value.message == (
        '"spec.replicas" is not a known field selector: only "metadata.name", "metadata.namespace"'
    )


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 7, 8])
async def test_pages_make_up_the_list(cluster: Cluster, home: str, limit: int) -> None:
    given = [f"n{number}" for number in range(7)]
    await fill(cluster, home, *given)
    pages = await all_pages(cluster, home, await cluster.list(CONFIG_MAP, home, limit=limit), limit)
    assert [name for page in pages for name in names(page)] == given
    assert all(len(page.items) == limit for page in pages[:-1])
    assert [page.remaining for page in pages] == [max(0, 7 - limit * (number + 1)) for number in range(len(pages))]
    assert len({page.revision for page in pages}) == 1


async def test_later_pages_show_the_first_ones_moment(cluster: Cluster, home: str) -> None:
    await fill(cluster, home, "a", "b", "c", "d")
    first = await cluster.list(CONFIG_MAP, home, limit=2)
    await cluster.delete(CONFIG_MAP, "c", home)
    await cluster.update(CONFIG_MAP, config_map("d", changed="1"), "d", home)
    await fill(cluster, home, "aa", "e")
    _, second = await all_pages(cluster, home, first, 2)
    assert names(second) == ["c", "d"]
    assert "data" not in second.items[1].doc()
    assert second.revision == first.revision


async def test_a_page_can_be_asked_for_twice_and_in_another_size(cluster: Cluster, home: str) -> None:
    await fill(cluster, home, "a", "b", "c", "d")
    first = await cluster.list(CONFIG_MAP, home, limit=1)
    for limit, found in ((2, ["b", "c"]), (1, ["b"]), (0, ["b", "c", "d"])):
        assert names(await cluster.list(CONFIG_MAP, home, limit=limit, after=first.next)) == found


async def test_selectors_hold_on_every_page(cluster: Cluster, home: str) -> None:
    for number in range(6):
        await cluster.create(CONFIG_MAP, config_map(f"n{number}", {"odd": str(number % 2)}), home)
    first = await cluster.list(CONFIG_MAP, home, labels="odd=1", limit=2)
    second = await cluster.list(CONFIG_MAP, home, labels="odd=1", limit=2, after=first.next)
    assert names(first) + names(second) == ["n1", "n3", "n5"]


async def test_a_list_given_up_is_expired(face: Face, cluster: Cluster, home: str) -> None:
    await fill(cluster, home, "a", "b")
    first = await cluster.list(CONFIG_MAP, home, limit=1)
    await face.expire_pages()
    if face.real:  # its cache goes on answering from memory, compacted or not
        assert names(await cluster.list(CONFIG_MAP, home, limit=1, after=first.next)) == ["b"]
        return
    with pytest.raises(Expired) as refusal:
        await cluster.list(CONFIG_MAP, home, limit=1, after=first.next)
    assert (refusal.value.status, refusal.value.reason) == (410, "Expired")
    assert names(await cluster.list(CONFIG_MAP, home)) == ["a", "b"]


@pytest.mark.parametrize("token", ["nonsense", "x@y", "1@²", "@", "1.1@-1", "1.1@" + "9" * 5000])
async def test_a_token_nobody_gave_out_is_refused(cluster: Cluster, home: str, token: str) -> None:
    with pytest.raises(BadRequest, match="continue key is not valid"):
        await cluster.list(CONFIG_MAP, home, limit=1, after=token)


async def test_a_token_is_good_for_its_own_list_only(face: Face, cluster: Cluster, home: str) -> None:
    await fill(cluster, home, "a", "b")
    first = await cluster.list(CONFIG_MAP, home, limit=1)
    if face.real:  # it takes any token for a place in the order of names
        assert names(await cluster.list(POD, home, limit=1, after=first.next)) == []
        return
    with pytest.raises(BadRequest, match="continue key is not valid"):
        await cluster.list(POD, home, limit=1, after=first.next)


async def test_a_large_list_is_whole(cluster: Cluster, home: str) -> None:
    given = [f"n{number:04}" for number in range(1500)]
    await fill(cluster, home, *given)
    assert names(await cluster.list(CONFIG_MAP, home)) == given
    pages = await all_pages(cluster, home, await cluster.list(CONFIG_MAP, home, limit=400), 400)
    assert [len(page.items) for page in pages] == [400, 400, 400, 300]
