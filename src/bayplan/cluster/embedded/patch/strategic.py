"""Strategic merge patch: objects merge, and so do lists that the table of types gives a merge key or calls sets.

Items of such a list that are new go before those that were there, unless `$setElementOrder/<list>` gives the order.
Directives: `$patch: replace|delete` in an object or item, `$retainKeys`, `$deleteFromPrimitiveList/<list>`.
Source of truth: apimachinery pkg/util/strategicpatch/patch.go. Its errors become status 500 but for a few; Go maps in
them are printed `map[...]`.
"""

from __future__ import annotations

import copy
from typing import Any

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.patch.convert import ConversionError, converted
from bayplan.cluster.embedded.patch.element_order import in_order, present
from bayplan.cluster.embedded.patch.merge import cannot_unmarshal
from bayplan.cluster.embedded.schema.table import TABLE, Field, fields_of
from bayplan.model.errors import BadRequest, Cause, Details, Invalid, ServerError

_PATCH, _RETAIN, _DELETE, _ORDER = "$patch", "$retainKeys", "$deleteFromPrimitiveList/", "$setElementOrder/"
_LIST_DIRECTIVES = ("$deleteFromPrimitiveList", "$setElementOrder")
_BAD_RETAIN = "invalid patch format of retainKeys"
_GO_TYPES = {dict: "map[string]interface {}", list: "[]interface {}", str: "string", bool: "bool", int: "int64"}
_GO_TYPES |= {float: "float64", type(None): "%!s(<nil>)"}


def strategic_merge(old: Doc, patch: object, kind_type: str) -> Doc:
    """The document with the patch merged in; neither argument is changed. Raises BadRequest, Invalid, ServerError.

    kind and apiVersion of the patch are ignored. Unknown fields are left for the decoder.
    """
    if patch is not None and not isinstance(patch, dict):
        raise BadRequest(cannot_unmarshal(patch))
    merged = _merge_map(copy.deepcopy(old), copy.deepcopy(patch or {}), kind_type)
    try:
        result: Doc = converted(merged, kind_type)
    except ConversionError as error:
        cause = Cause("patch", "FieldValueInvalid", f'Invalid value: "...": {error}')
        raise Invalid(f' "" is invalid: patch: {cause.message}', details=Details(causes=(cause,))) from None
    return result | {key: old[key] for key in ("apiVersion", "kind") if key in old}


def _merge_map(original: Doc, patch: Doc, type_name: str) -> Doc:
    """`original`, changed in place. `type_name` is '' where nothing is known."""
    if _PATCH in patch:
        return _directed(patch)
    _retain_keys(original, patch)
    for key in [key for key in patch if key.startswith("$setElementOrder")]:
        _merge_ordered(original, patch, key, type_name)
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList"):
            _delete_primitives(original, key, value)
        elif value is None:
            original.pop(key, None)
        elif isinstance(value, dict) and isinstance(original.get(key), dict):
            original[key] = _merge_field_map(original[key], value, _field(type_name, key))
        elif isinstance(value, list) and isinstance(original.get(key), list):
            original[key] = _merge_field_list(original[key], value, _field(type_name, key))
        else:
            _put(original, key, value)
    return original


def _directed(patch: Doc) -> Doc:
    directive = patch[_PATCH]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if directive == "delete":
        return {}
    raise _bad_directive(directive)


def _bad_directive(directive: Any) -> ServerError:
    shown = directive if isinstance(directive, str) else f"%!s({_GO_TYPES[type(directive)]}={directive})"
    return ServerError(f"unknown patch type: {shown} in map: map[...]")


def _retain_keys(original: Doc, patch: Doc) -> None:
    """`$retainKeys` lists the keys that stay; it must list those that the patch sets."""
    if _RETAIN not in patch:
        return
    keys = patch.pop(_RETAIN)
    if not isinstance(keys, list):
        raise BadRequest(_BAD_RETAIN)
    set_here = (key for key, value in patch.items() if value is not None and not key.startswith(_LIST_DIRECTIVES))
    if any(key not in keys for key in set_here):
        raise BadRequest(_BAD_RETAIN)
    for key in [key for key in original if key not in keys]:
        del original[key]


def _put(original: Doc, key: str, value: Any) -> None:
    """A value that takes the place of another or of none: nulls and directives in it mean nothing."""
    kept, keep = _undirected(_without_nulls(value))
    if keep:
        original[key] = kept
    else:
        original.pop(key, None)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _undirected(value: Any) -> tuple[Any, bool]:
    """The value without the parts that carry `$patch`, and whether anything of it stays."""
    if isinstance(value, dict):
        if _PATCH in value:
            return None, False
        kept = {key: _undirected(item) for key, item in value.items()}
        return {key: item for key, (item, keep) in kept.items() if keep}, True
    if isinstance(value, list):
        return [item for item, keep in map(_undirected, value) if keep], True
    return value, True


def _field(type_name: str, key: str) -> Field:
    """What the table says of a field. Upstream falls back to names that differ in case only."""
    if type_name not in TABLE.types:
        kind = "slice" if type_name.startswith("[]") else "map" if type_name.startswith("map ") else "interface"
        raise ServerError(f"merging an object in json but data type is not struct, instead is: {kind}")
    known = fields_of(type_name)
    folded = (field for name, field in known.items() if name.lower() == key.lower())
    field = known.get(key) or next(folded, None)
    if field is None:
        struct = type_name.rpartition(".")[2]
        raise ServerError(f'unable to find api field in struct {struct} for the json field "{key}"')
    return field


def _strategy(field: Field) -> str:
    return next((name for name in field.patch.split(",") if name != "retainKeys"), "")


def _merge_field_map(original: Doc, patch: Doc, field: Field) -> Doc:
    return patch if _strategy(field) == "replace" else _merge_map(original, patch, field.type.lstrip("*"))


def _merge_field_list(original: list[Any], patch: list[Any], field: Field) -> list[Any]:
    return _merge_list(original, patch, field) if _strategy(field) == "merge" else patch


def _delete_primitives(original: Doc, key: str, value: Any) -> None:
    if not key.startswith(_DELETE):
        raise BadRequest("invalid patch format of primitive list")
    name = key.removeprefix(_DELETE)
    if value is None:
        original.pop(name, None)
    elif isinstance(original.get(name), list) and isinstance(value, list):
        original[name] = [item for item in original[name] if not present(item, value, "")]


def _is_map_list(original: list[Any], patch: list[Any]) -> bool:
    """Whether the items are objects. All of them must be of one type, and none a list."""
    items = [*original, *patch]
    if not items:
        raise ServerError("no elements in any of the given slices")
    if isinstance(items[0], list):
        raise Invalid("the server rejected our request due to an error in our request")
    if any(type(item) is not type(items[0]) for item in items):
        raise ServerError(f"list element types are not identical: [{_go_list(original)} {_go_list(patch)}]")
    return isinstance(items[0], dict)


def _go_list(items: list[Any]) -> str:
    return "[" + " ".join("map[...]" if isinstance(item, dict) else str(item) for item in items) + "]"


def _merge_list(original: list[Any], patch: list[Any], field: Field) -> list[Any]:
    if not original and not patch:
        return original
    key = ""
    if _is_map_list(original, patch):
        key = field.merge_key
        if not key:
            raise ServerError("cannot merge lists without merge key for struct")
        original, patch = _without_directives(original, patch, key)
        merged = _merge_items(original, patch, key, field.type.removeprefix("[]").lstrip("*"))
    else:
        merged = _distinct([*original, *patch])
    return in_order(merged, patch, original, key)


def _distinct(items: list[Any]) -> list[Any]:
    """Without repeats, the way upstream drops them: the last item takes the repeat's place."""
    result = list(items)
    at = 0
    while at < len(result) - 1:
        other = at + 1
        while other < len(result):
            if result[other] == result[at]:
                last = result.pop()
                if other < len(result):
                    result[other] = last
            else:
                other += 1
        at += 1
    return result


def no_merge_key(key: str) -> ServerError:
    """An item that cannot be matched with another."""
    return ServerError(f"map: map[...] does not contain declared merge key: {key}")


def _without_directives(original: list[Doc], patch: list[Doc], key: str) -> tuple[list[Doc], list[Doc]]:
    """The list after the deletions of the patch, and the items to merge into it."""
    plain = [item for item in patch if _PATCH not in item]
    for item in patch:
        directive = item.get(_PATCH)
        if _PATCH not in item or directive == "replace":
            continue
        if directive == "merge":
            raise ServerError("merging lists cannot yet be specified in the patch")
        if directive != "delete":
            raise _bad_directive(directive)
        if key not in item:
            raise no_merge_key(key)
        original = [old for old in original if not present(old, [item], key)]
    if any(item.get(_PATCH) == "replace" for item in patch):
        return plain, []
    return original, plain


def _merge_items(original: list[Doc], patch: list[Doc], key: str, type_name: str) -> list[Doc]:
    result = list(original)
    for item in patch:
        if key not in item:
            raise no_merge_key(key)
        at = next((at for at, old in enumerate(result) if present(old, [item], key)), None)
        if at is None:
            result.append(item)
        else:
            result[at] = _merge_map(result[at], item, type_name)
    return result


def _merge_ordered(original: Doc, patch: Doc, directive: str, type_name: str) -> None:
    """A list whose final order the patch gives with `$setElementOrder/<list>`."""
    order = patch.pop(directive)
    _must_be_list(order)
    if not directive.startswith(_ORDER):
        raise BadRequest("invalid patch format of setElementOrder list")
    name = directive.removeprefix(_ORDER)
    mine, theirs = original.get(name, []), patch.get(name, [])
    _must_be_list(mine)
    _must_be_list(theirs)
    field = _field(type_name, name)
    if not field.type.lstrip("*").startswith("[]"):
        raise ServerError("expected slice or array type, but got: struct")
    _check_order(theirs, order, field.merge_key)
    if name in original and name in patch:
        merged = _merge_field_list(mine, theirs, field)
    elif name in original or name in patch:
        merged = mine if name in original else _undirected(theirs)[0]
    else:
        return
    _is_map_list(mine, theirs)
    original[name] = in_order(merged, order, mine, field.merge_key)
    patch.pop(name, None)


def _must_be_list(value: Any) -> None:
    if not isinstance(value, list):
        raise ServerError(f"expected a []interface {{}}, but received a {_GO_TYPES[type(value)]}")


def _check_order(items: list[Any], order: list[Any], key: str) -> None:
    """The items of the patch must stand in the order list, in its order."""
    if not order or not items:
        return
    left = [item for item in items if _directive(item) != "delete"]
    for wanted in order:
        while left and _directive(left[0]) is not None:  # passed over, unless the order list ends first
            left.pop(0)
        if left and _matches(left[0], wanted, key):
            left.pop(0)
    if left:
        raise ServerError(
            f"The order in patch list:\n{_go_list(items)}\n doesn't match $setElementOrder list:\n{_go_list(order)}\n"
        )


def _directive(item: Any) -> Any:
    return item.get(_PATCH) if isinstance(item, dict) else None


def _matches(item: Any, wanted: Any, key: str) -> bool:
    for side in (item, wanted) if key else ():
        if not isinstance(side, dict):
            raise ServerError(f"expected a map[string]interface {{}}, but received a {_GO_TYPES[type(side)]}")
        if key not in side:
            raise no_merge_key(key)
    return present(item, [wanted], key)
