"""What a shape takes, said as data, for who describes it rather than reads by it.

Every shape carries its form: the combinators give theirs from what they combine, and a shape at
the bottom says its own in JSON Schema, where it is written. :mod:`.export` makes one JSON Schema of
all. What no JSON Schema can know (which names there are) only the shape itself checks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Callable, TypeVar, Union

S = TypeVar("S", bound=Callable[..., Any])

#: A reader of one value, as YAML gave it; see :mod:`.shapes`.
Shape = Callable[[Any], Any]


@dataclass(frozen=True)
class Json:
    """A value that JSON Schema (draft-07) can say by itself."""

    schema: Mapping[str, Any]


@dataclass(frozen=True)
class Section:
    """A mapping with these keys, of which ``needs`` must be there; null is an empty one."""

    shapes: Mapping[str, Shape]
    needs: Sequence[str] = ()


@dataclass(frozen=True)
class Table:
    """A mapping whose keys are the user's own, save for ``never``; null is an empty one."""

    shape: Shape
    key: Shape
    never: Sequence[str] = ()


@dataclass(frozen=True)
class Items:
    """A list of at least so many."""

    shape: Shape
    least: int = 0


@dataclass(frozen=True)
class Either:
    """One of several."""

    shapes: Sequence[Shape | Table]


@dataclass(frozen=True)
class Keyed:
    """A value, or ``{by-<field>: {<pattern>: <the same>, default: <the same>}}``."""

    shape: Shape
    by: Sequence[str]


@dataclass(frozen=True)
class Whatever:
    """Any value that JSON knows, keyed at whatever depth."""

    by: Sequence[str]


@dataclass(frozen=True)
class About:
    """A shape, and what it is for."""

    text: str
    shape: Shape = field(repr=False)


Form = Union[Json, Section, Table, Items, Either, Keyed, Whatever, About]


def formed(read: Shape, form: Form | Callable[[], Form]) -> Shape:
    """The shape that reads so and is of this form, or of one that is made when asked for."""
    if not isinstance(read, FunctionType) or hasattr(read, "form"):
        inner = read

        def read(raw: Any) -> Any:
            return inner(raw)

    read.form = form  # type: ignore[attr-defined]
    return read


def takes(**schema: Any) -> Callable[[S], S]:
    """Say of a shape what JSON Schema can say of it."""

    def mark(read: S) -> S:
        read.form = Json(schema)  # type: ignore[attr-defined]
        return read

    return mark


def about(text: str, shape: Shape) -> Shape:
    """The same shape, with what it is for."""
    return formed(shape, About(text, shape))


def null(raw: Any) -> Any:
    """Null, as one of several forms; :func:`taskgraph_workers.config.shapes.optional` reads it."""
    return raw


null.form = Json({"type": "null"})  # type: ignore[attr-defined]


def form_of(shape: Shape) -> Form:
    """The form of a shape. Raises AttributeError where it says none."""
    form: Any = shape.form  # type: ignore[attr-defined]
    found: Form = form() if callable(form) else form
    return found
