"""Entities of the miniature world and how one is drawn.

Every entity has a name, which others may bear as well, and three attributes that tell namesakes
apart: its sort (a trade, a medium, a kind of settlement, an office), a year and a country. What
questions ask for are its facts: open-ended names, drawn fresh, so that no list can be learnt.
Sorts and countries are the closed vocabulary of the world, as common nouns are of a language.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from eval.miniature.names import NameMaker

KINDS = ("person", "work", "place", "office")

SORTS: dict[str, tuple[str, ...]] = {
    "person": (
        "painter", "composer", "physician", "architect", "navigator", "astronomer", "poet",
        "botanist", "clockmaker", "lawyer",
    ),
    "work": ("novel", "opera", "painting", "film", "symphony", "play"),
    "place": ("town", "island", "monastery", "fortress", "mine"),
    "office": ("mayor", "harbourmaster", "bishop", "judge", "rector"),
}  # fmt: skip

RELATIONS: dict[str, tuple[str, ...]] = {
    "person": ("birthplace", "teacher", "spouse", "work", "employer"),
    "work": ("creator", "dedicatee", "premiere", "keeper"),
    "place": ("river", "founder", "twin", "landmark"),
    "office": ("holder", "seat", "first"),
}

COUNTRIES: dict[str, str] = {  # name -> demonym
    "Velmark": "Velmarkian",
    "Ostrania": "Ostranian",
    "Caldora": "Caldoran",
    "Brenholt": "Brenholtish",
    "Suvia": "Suvian",
    "Tarrowland": "Tarrowlander",
    "Ilmeria": "Ilmerian",
    "Quessex": "Quessexian",
    "Norrhaven": "Norrhavener",
    "Hadravia": "Hadravian",
}

FIRST_YEAR, LAST_YEAR = 1780, 1949


@dataclass(frozen=True, slots=True)
class Entity:
    page_id: int
    kind: str
    name: str
    title: str  # unique among the articles
    sort: str
    year: int  # of birth, appearance or foundation
    country: str
    facts: dict[str, str]  # relation -> answer
    pronoun: str = "it"
    predecessor: str | None = None  # of an office's holder, in the later snapshot
    holder_since: int | None = None
    later: tuple[str, ...] = ()  # facts that stand in the second passage of the article

    @property
    def decade(self) -> int:
        return self.year // 10 * 10


def draw_entity(
    kind: str, rng: random.Random, names: NameMaker, name: str | None = None, page_id: int = 0
) -> Entity:
    """One entity with every fact its kind has; `name` makes it a namesake of another."""
    name = name or _NEW_NAME[kind](names)
    year = rng.randrange(FIRST_YEAR, LAST_YEAR + 1)
    sort = rng.choice(SORTS[kind])
    country = rng.choice(tuple(COUNTRIES))
    return Entity(
        page_id=page_id,
        kind=kind,
        name=name,
        title=make_title(kind, name, sort, year, country),
        sort=sort,
        year=year,
        country=country,
        facts={relation: _ANSWERS[relation](names) for relation in RELATIONS[kind]},
        pronoun=rng.choice(("he", "she")) if kind == "person" else "it",
        holder_since=rng.randrange(2006, 2016) if kind == "office" else None,
    )


def draw_namesakes(
    kind: str, size: int, rng: random.Random, names: NameMaker, name: str | None = None, shared: int = 1
) -> list[Entity]:
    """`size` entities of one name; no two share more than `shared` of sort, decade and country.

    Offices of one place differ in what they are; places of one name in their country.
    """
    name = name or _NEW_NAME[kind](names)
    group: list[Entity] = []
    while len(group) < size:
        entity = draw_entity(kind, rng, names, name)
        if kind == "office":
            clash = any(entity.sort == other.sort for other in group)
            if group:
                entity = replace(entity, country=group[0].country)
        elif kind == "place":
            clash = any(
                entity.country == other.country or _too_close(entity, other, shared) for other in group
            )
        else:
            clash = any(_too_close(entity, other, shared) for other in group)
        if not clash:
            group.append(entity)
    return group


def change_holder(entity: Entity, rng: random.Random, names: NameMaker) -> Entity:
    """The same office after a change of holder between 2016 and 2018."""
    return replace(
        entity,
        facts={**entity.facts, "holder": names.person()},
        predecessor=entity.facts["holder"],
        holder_since=rng.choice((2016, 2017, 2018)),
    )


def make_title(kind: str, name: str, sort: str, year: int, country: str) -> str:
    if kind == "person":
        return f"{name} (born {year})"
    if kind == "work":
        return f"{name} ({year} {sort})"
    if kind == "place":
        return f"{name}, {country}"
    return f"{sort.capitalize()} of {name}"


def _too_close(a: Entity, b: Entity, shared: int) -> bool:
    same = (a.sort == b.sort) + (a.decade == b.decade) + (a.country == b.country)
    return a.year == b.year or same > shared


_NEW_NAME: dict[str, Callable[[NameMaker], str]] = {
    "person": NameMaker.person,
    "work": NameMaker.work,
    "place": NameMaker.place,
    "office": NameMaker.place,
}
_ANSWERS: dict[str, Callable[[NameMaker], str]] = {
    "birthplace": NameMaker.place,
    "teacher": NameMaker.person,
    "spouse": NameMaker.person,
    "work": NameMaker.work,
    "employer": NameMaker.institution,
    "creator": NameMaker.person,
    "dedicatee": NameMaker.person,
    "premiere": NameMaker.place,
    "keeper": NameMaker.institution,
    "river": NameMaker.river,
    "founder": NameMaker.person,
    "twin": NameMaker.place,
    "landmark": NameMaker.building,
    "holder": NameMaker.person,
    "seat": NameMaker.building,
    "first": NameMaker.person,
}
