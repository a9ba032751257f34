"""What a client may ask of the cluster: the verbs of the Kubernetes API, synchronous and whole.

Each verb either does all of its work and returns, or raises an ApiError and leaves everything as it was. There is no
I/O here: time comes from `now`, chance from a seeded generator, so the same calls give the same bytes.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec

from bayplan.cluster.embedded import deletion
from bayplan.cluster.embedded.admission.body import part_pod, read_metadata, split_pod
from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.metadata import validate_metadata
from bayplan.cluster.embedded.admission.pipeline import (
    admit_create,
    admit_update,
    fill_metadata,
    match_namespace,
)
from bayplan.cluster.embedded.admission.plugin import Plugin, Request
from bayplan.cluster.embedded.admission.plugins import PLUGINS
from bayplan.cluster.embedded.admission.recall import Recall
from bayplan.cluster.embedded.admission.registry import strategy_of
from bayplan.cluster.embedded.custom.types import CustomTypes
from bayplan.cluster.embedded.deletion import DeleteOptions
from bayplan.cluster.embedded.patch.managed_fields import update as update_owners
from bayplan.cluster.embedded.patch.merge import merge_patch
from bayplan.cluster.embedded.patching import (
    APPLY_PATCH,
    applied,
    check_patch_options,
    check_patchable,
    managed_fields,
    patch_type,
    patched,
    read_patch,
    read_result,
    same_owners,
)
from bayplan.cluster.embedded.refusals import (
    already_exists,
    not_found,
    uid_changed,
    uid_precondition,
)
from bayplan.cluster.embedded.requests import (
    PLAIN,
    Answer,
    WriteOptions,
    check_name,
    check_options,
    check_subresource,
    check_version,
)
from bayplan.cluster.embedded.state import StoreState, Transaction
from bayplan.cluster.embedded.store import Store
from bayplan.cluster.kinds import POD, Kind
from bayplan.cluster.objects import Object, Section, meta_of, sections_of
from bayplan.model.clock import Instant, rfc3339
from bayplan.model.errors import Conflict, Details, ServerError
from bayplan.model.meta import ObjectMeta

_NOT_FOR_CREATION = frozenset(("resourceVersion", "managedFields"))
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"  # as upstream: no vowels, nothing that reads as a word


class Server:
    """The API of one cluster, over its store."""

    def __init__(self, store: Store, now: Callable[[], Instant], chance: random.Random) -> None:
        self.store = store
        self.now = now
        self._chance = chance
        self._state = StoreState(store)
        self._plugins: tuple[Plugin, ...] = PLUGINS
        self._recall = Recall(store)
        self._stamp: ObjectMeta | None = None
        """What was stamped last and found to be in order."""
        self.types = CustomTypes(store)

    # --- identity of new objects (see admission.pipeline.Identity)

    def uid(self) -> str:
        """A new random UID (RFC 9562, version 4), from the seeded generator."""
        digits = f"{self._chance.getrandbits(128):032x}"
        variant = "89ab"[int(digits[16], 16) & 3]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"

    def suffix(self) -> str:
        """Five characters for a generated name."""
        draw = self._chance.random
        return "".join([_SUFFIX[int(draw() * len(_SUFFIX))] for _ in range(5)])

    def is_taken(self, kind: Kind, meta: Doc) -> bool:
        """Whether an object of that kind has the name already."""
        return self.store.get(kind, meta.get("namespace", ""), meta["name"]) is not None

    def timestamp(self) -> str:
        """The present second."""
        return rfc3339(self.now())

    # --- reading

    def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """One object. Raises NotFound."""
        found = self._find(kind, namespace, name)
        if found is None:
            raise not_found(kind, name)
        return found

    def _find(self, kind: Kind, namespace: str, name: str) -> Object | None:
        found = self.store.get(kind, namespace, name)
        return None if found is None else found.as_kind(kind)

    # --- writing

    def create(self, kind: Kind, namespace: str, body: bytes | Doc, options: WriteOptions = PLAIN) -> Answer:
        """Store a new object. Raises AlreadyExists, Invalid, BadRequest, Forbidden, NotFound (of its namespace)."""
        check_options(options, "CreateOptions")
        spec = b""
        if kind is POD and options == PLAIN:
            given: bytes | Doc
            given, spec = split_pod(body) if isinstance(body, bytes) else part_pod(body)
            meta = read_metadata(given) if self._recall.knows(namespace, spec) else None
            stored = self._create_as_before(namespace, meta, spec) if meta is not None else None
            if stored is not None:
                return Answer(stored, 201)
        doc, warnings = self._read(kind, body, options)
        answer = self._create(kind, namespace, doc, warnings, options)
        if spec:
            self._recall.keep(namespace, spec, doc["metadata"], answer.object.sections, warnings)
        return answer

    def _create_as_before(self, namespace: str, meta: Doc, spec: bytes) -> Object | None:
        """Create a pod whose spec was admitted before; None when it has to go the whole way."""
        sections = self._recall.find(namespace, spec, meta)
        if sections is None or meta.get("namespace", namespace) != namespace or meta.keys() & _NOT_FOR_CREATION:
            return None
        meta["namespace"] = namespace
        fill_metadata(meta, strategy_of(POD), self)
        errors = Errors()
        validate_metadata({"metadata": meta}, namespaced=True, name_rule=strategy_of(POD).name_rule, errors=errors)
        if errors or self.store.get(POD, namespace, meta["name"]) is not None:
            return None
        return self.store.put(POD, meta_of({"metadata": meta}), sections)

    def _create(
        self,
        kind: Kind,
        namespace: str,
        doc: Doc,
        warnings: list[str],
        options: WriteOptions,
        owners: list[Doc] | None = None,
    ) -> Answer:
        strategy = self.types.form(kind).strategy
        match_namespace(doc, kind, namespace)
        strategy.default(doc)
        owners = self._owners(kind, None, doc, options, "") if owners is None else owners
        version = doc["metadata"].pop("resourceVersion", "")
        request = Request(kind, "CREATE", namespace, doc, dry_run=options.dry_run, warnings=warnings)
        state = self._state.transaction()
        admit_create(strategy, request, self._plugins, state, self)
        if version.isascii() and version.isdigit() and version.strip("0") and not options.dry_run:
            raise ServerError("resourceVersion should not be set on objects to be created")
        name = doc["metadata"]["name"]
        if self.store.get(kind, doc["metadata"].get("namespace", ""), name) is not None:
            raise already_exists(kind, name)
        _set_owners(doc, owners)
        return Answer(self._commit(kind, doc, None, options, state), 201, tuple(warnings))

    def update(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        body: bytes | Doc,
        options: WriteOptions = PLAIN,
        *,
        subresource: str = "",
    ) -> Answer:
        """Replace an object, or one subresource of it. Raises NotFound, Conflict, Invalid, BadRequest, Forbidden.

        Without a resourceVersion the present version is replaced, whichever it is; some kinds refuse that.
        """
        check_subresource(kind, subresource)
        check_options(options, "UpdateOptions")
        doc, warnings = self._read(kind, body, options)
        match_namespace(doc, kind, namespace)
        check_name(doc, name)
        old = self._find(kind, namespace, name)
        if old is None:
            if not self.types.form(kind).strategy.create_on_update or subresource:
                raise not_found(kind, name)
            doc["metadata"].pop("resourceVersion", None)
            return self._create(kind, namespace, doc, warnings, options)
        if doc["metadata"].get("uid", old.uid) != old.uid:
            raise uid_precondition(kind, old, doc["metadata"]["uid"])
        return self._replace(old, doc, warnings, options, subresource)

    def _replace(
        self,
        old: Object,
        doc: Doc,
        warnings: list[str],
        options: WriteOptions,
        subresource: str = "",
        owners: list[Doc] | None = None,
    ) -> Answer:
        """Make `doc`, decoded, the next version of `old`."""
        kind = old.kind
        strategy = self.types.form(kind).strategy
        strategy.default(doc)
        check_version(old, doc, needed=strategy.needs_version)
        owners = self._owners(kind, old, doc, options, subresource) if owners is None else owners
        doc["metadata"].pop("managedFields", None)
        request = Request(kind, "UPDATE", old.namespace, doc, old.doc(), subresource, options.dry_run, warnings)
        state = self._state.transaction()
        admit_update(strategy, request, self._plugins, state)
        before = managed_fields(old)
        _set_owners(doc, before if same_owners(owners, before) and not _differ(doc, request.old) else owners)
        return Answer(self._commit(kind, doc, old, options, state), 200, tuple(warnings))

    def _owners(self, kind: Kind, old: Object | None, doc: Doc, options: WriteOptions, subresource: str) -> list[Doc]:
        """Who owns which fields after a write that is not an apply."""
        before = managed_fields(old)
        sent = doc["metadata"].get("managedFields")
        form = self.types.form(kind)
        if (not options.field_manager and not before and not sent) or not form.fits(doc):
            return []
        return update_owners(
            None if old is None else old.doc(),
            doc,
            before,
            manager=options.field_manager,
            api_version=doc["apiVersion"],
            subresource=subresource,
            now=self.timestamp(),
            kind_type=form.type_name,
        )

    def _read(self, kind: Kind, body: bytes | Doc, options: WriteOptions) -> tuple[Doc, list[str]]:
        raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return self.types.form(kind).read(raw, options.content_type, options.validation)

    def _commit(self, kind: Kind, doc: Doc, old: Object | None, options: WriteOptions, state: Transaction) -> Object:
        """Store an admitted document: unchanged sections are shared, an unchanged object is left alone."""
        meta = meta_of(doc)
        sections = sections_of(doc) if old is None else _shared_sections(doc, old)
        if old is not None:
            meta = msgspec.structs.replace(meta, resource_version=old.meta.resource_version)
            if meta == old.meta and sections == old.sections:  # sections compare by identity
                return old
        if options.dry_run:
            return Object(kind, meta, sections, old.version if old else 0)
        state.commit()
        last = Object(kind, meta, sections, old.version if old else 0)
        if old is not None and deletion.finished(last):
            self.store.remove(kind, meta.namespace, meta.name, last)
            return last
        return self.store.put(kind, meta, sections).as_kind(kind)

    # --- writing as the cluster's own parts do: trusted, so unchecked

    def stamp(self, kind: Kind, meta: ObjectMeta, sections: dict[str, Section]) -> Object:
        """Create an object from ready sections; admission has its say all the same."""
        spec = sections["spec"].raw if kind is POD and "spec" in sections else b""
        again = self._stamp_again(meta, spec) if meta is self._stamp else None
        if again is not None:
            return again
        document = msgspec.to_builtins(meta)
        stored = self._create_as_before(meta.namespace, document, spec) if spec else None
        if stored is not None:
            self._stamp = meta if meta.generate_name and not meta.name else None
            return stored
        doc = {"metadata": msgspec.to_builtins(meta), **{name: each.plain() for name, each in sections.items()}}
        answer = self.create(kind, meta.namespace, doc)
        if spec:
            self._recall.keep(meta.namespace, spec, document, answer.object.sections, answer.warnings)
        return answer.object

    def _stamp_again(self, meta: ObjectMeta, spec: bytes) -> Object | None:
        """Another pod with the same metadata: nothing about it is new but what is unique to it."""
        sections = self._recall.find(meta.namespace, spec, {"generateName": meta.generate_name})
        identity: Doc = {"generateName": meta.generate_name, "namespace": meta.namespace}
        if sections is None:
            return None
        fill_metadata(identity, strategy_of(POD), self)
        if self.is_taken(POD, identity):
            return None
        return self.store.put(
            POD,
            msgspec.structs.replace(
                meta,
                name=identity["name"],
                uid=identity["uid"],
                creation_timestamp=identity["creationTimestamp"],
                generation=identity["generation"],
            ),
            sections,
        )

    def insert(self, kind: Kind, doc: Doc) -> Object:
        """Store a document that is complete but for its identity."""
        doc["metadata"] |= {"uid": self.uid(), "creationTimestamp": self.timestamp()}
        return self.store.put(kind, meta_of(doc), sections_of(doc))

    def replace_sections(self, item: Object, changed: Doc) -> Object:
        """Replace some sections of an object; a section that does not change is left alone, and so is the object."""
        return self._write(item, item.meta, changed)

    def _write(self, present: Object, meta: ObjectMeta, changed: Doc) -> Object:
        sections = dict(present.sections)
        for name, value in changed.items():
            section = value if type(value) is Section else Section(msgspec.json.encode(value))
            if name not in sections or sections[name].raw != section.raw:
                sections[name] = section
        if meta == present.meta and sections == present.sections:
            return present
        last = Object(present.kind, meta, sections, present.version)
        if deletion.finished(last):
            return self.store.remove(present.kind, present.namespace, present.name, last)
        return self.store.put(present.kind, meta, sections)

    def merge(self, item: Object, patch: Doc) -> Object:
        """Merge-patch an object's present version. Raises NotFound, Conflict when it was made anew."""
        present = self._present(item)
        meta = present.meta
        if "metadata" in patch:
            plain = msgspec.json.decode(msgspec.json.encode(meta))  # by way of JSON: managedFields are raw
            meta = meta_of({"metadata": merge_patch(plain, patch["metadata"])})
        others = {name: part for name, part in patch.items() if name != "metadata"}
        changed = {name: merge_patch(present.sections[name].plain(), part) for name, part in others.items()}
        return self._write(present, meta, changed)

    def _present(self, item: Object) -> Object:
        present = self.get(item.kind, item.namespace, item.name)
        if present.uid != item.uid:
            raise uid_changed(present, item.uid)
        return present

    def write_status(self, item: Object, status: Doc | Section) -> Object:
        """Replace the status of an object's present version. Raises NotFound, Conflict when it was made anew."""
        return self.replace_sections(self._present(item), {"status": status})

    def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        type_: str,
        body: bytes,
        options: WriteOptions = PLAIN,
        *,
        subresource: str = "",
    ) -> Answer:
        """Change an object by a patch. Raises NotFound, Conflict, Invalid, BadRequest, UnsupportedMediaType."""
        check_subresource(kind, subresource)
        type_ = patch_type(type_)
        check_patch_options(type_, options.field_manager, options.force)
        check_options(options, "PatchOptions")
        form = self.types.form(kind)
        check_patchable(type_, form)
        old = self._find(kind, namespace, name)
        if old is None and type_ != APPLY_PATCH:
            raise not_found(kind, name)
        sent = read_patch(type_, body)
        owners = None
        if old is None or type_ == APPLY_PATCH:
            result, owners = applied(
                kind,
                form,
                name,
                old,
                sent.patch,
                manager=options.field_manager,
                force=bool(options.force),
                subresource=subresource,
                now=self.timestamp(),
            )
        else:
            result = patched(form, old, sent)
        doc, warnings = read_result(kind, form, result, sent, options.validation)
        if (result.get("metadata") or {}).get("managedFields") == []:
            doc["metadata"]["managedFields"] = [{}]  # decoding drops an empty list, and it means as much: no owners
        match_namespace(doc, kind, namespace)
        check_name(doc, name)
        if old is None:
            return self._create(kind, namespace, doc, warnings, options, owners)
        return self._replace(old, doc, warnings, options, subresource, owners)

    def delete(self, kind: Kind, namespace: str, name: str, options: DeleteOptions = deletion.BY_DEFAULT) -> Object:
        """Begin or finish a deletion; the object's last known state. Raises NotFound, Conflict (preconditions)."""
        item = self.get(kind, namespace, name)
        if options.uid and options.uid != item.uid:
            raise uid_changed(item, options.uid)
        if options.version and options.version != item.meta.resource_version:
            raise Conflict(
                f'Operation cannot be fulfilled on {kind.resource} "{name}": the ResourceVersion in the precondition '
                f"({options.version}) does not match the ResourceVersion in record ({item.meta.resource_version}). "
                "The object might have been modified",
                details=Details(name=name, group=kind.group, kind=kind.plural),
            )
        request = Request(kind, "DELETE", namespace, item.doc(), dry_run=options.dry_run)
        for plugin in self._plugins:
            if plugin.wants(request):
                plugin.validate(request, self._state.transaction())
        meta = deletion.begin(item, options, self.now())
        if options.dry_run:
            return item
        if meta is None:
            return self.store.remove(kind, namespace, name)
        sections = item.sections
        if deletion.terminating(item):
            sections = {**sections, "status": Section(b'{"phase":"Terminating"}')}
        return item if meta == item.meta else self.store.put(kind, meta, sections)


_ordered = msgspec.json.Encoder(order="deterministic").encode  # as text: to Python 1, 1.0 and True are the same


def _shared_sections(doc: Doc, old: Object) -> dict[str, Section]:
    """The sections of a document, taken from the old version where nothing but the order of keys differs."""
    sections = {}
    for name, section in sections_of(doc).items():
        before = old.sections.get(name)
        same = before is not None and (before.raw == section.raw or _ordered(before.plain()) == _ordered(doc[name]))
        sections[name] = before if before is not None and same else section
    return sections


def _set_owners(doc: Doc, owners: list[Doc]) -> None:
    if owners:
        doc["metadata"]["managedFields"] = owners
    else:
        doc["metadata"].pop("managedFields", None)


def _differ(doc: Doc, old: Doc | None) -> bool:
    """Whether anything but managedFields differs."""
    assert old is not None
    metas = ({**each["metadata"], "managedFields": None} for each in (doc, old))
    return {**doc, "metadata": next(metas)} != {**old, "metadata": next(metas)}
