"""TOML files as frozen dataclasses, strictly: an unknown, missing or ill-typed key is one clear error."""

from __future__ import annotations

import math
import types
import typing
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from rag_core.errors import UsageError


def checked(
    path: str, prefix: str, kind: Any, table: dict[str, Any], given: typing.Collection[str] = ()
) -> dict[str, Any]:
    """The table's values as the dataclass `kind` takes them; lists become tuples, lists of tables records.

    `given` fields come from elsewhere. UsageError names the file, the key (behind `prefix`), what is right.
    """
    hints = typing.get_type_hints(kind)
    known = [f.name for f in fields(kind) if f.name not in given]
    values = {}
    for key, value in table.items():
        if key not in known:
            raise UsageError(f"{path}: unknown key {prefix + key!r}; keys here: {', '.join(known)}")
        values[key] = _converted(path, prefix + key, hints[key], value)
    needed = [f.name for f in fields(kind) if f.name in known and _is_required(f)]
    missing = [name for name in needed if name not in values]
    if missing:
        raise UsageError(f"{path}: {prefix}{missing[0]} is missing")
    return values


def _converted(path: str, name: str, hint: Any, value: Any) -> Any:
    record = _record_of(hint)
    if record is not None:
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise UsageError(f"{path}: {name} = {value!r}: expected tables, [[{name}]]")
        return tuple(
            record(**checked(path, f"{name}[{i}].", record, item)) for i, item in enumerate(value, 1)
        )
    value = tuple(value) if isinstance(value, list) else value
    if not _fits(value, hint):
        raise UsageError(f"{path}: {name} = {value!r}: expected {_name_of(hint)}")
    return value


def _record_of(hint: Any) -> Any:
    """The dataclass of `tuple[Record, ...]`; None for other types."""
    arguments = typing.get_args(hint)
    return arguments[0] if arguments and is_dataclass(arguments[0]) else None


def _is_required(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _fits(value: Any, hint: Any) -> bool:
    if isinstance(hint, types.UnionType):
        return any(_fits(value, part) for part in hint.__args__)
    if typing.get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(isinstance(item, str) for item in value)
    if typing.get_origin(hint) is dict:
        return isinstance(value, dict)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool) and value > 0
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return isinstance(value, hint)


def _name_of(hint: Any) -> str:
    parts = hint.__args__ if isinstance(hint, types.UnionType) else (hint,)
    names = {str: "a text", int: "a whole number above 0", bool: "true or false", float: "a number"}
    kinds = ("a table" if typing.get_origin(p) is dict else names.get(p, "a list of texts") for p in parts)
    return " or ".join(kind for p, kind in zip(parts, kinds) if p is not type(None))
