"""Articles about what is named after an entity: prizes, streets, ships, lists, films about it.

They carry its name in title and text and its cues in the words of questions, but no answer. A
frozen encoder likes them: they are short and call the entity as a question does. What they are is
one of a fixed set of kinds, so that a trained question encoder can learn to pass them over.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from eval.miniature.facts import Entity
from eval.miniature.names import NameMaker
from eval.miniature.phrasing import subject_phrase

# kind of entity -> kind of article -> (title, what it is). {name} the name; {bearers} the
# namesakes, as a question would call them; {b} a person, {p} a place, {i} an institution.
NAMED_AFTER: dict[str, dict[str, tuple[str, str]]] = {
    "person": {
        "prize": ("{name} Prize", "The {name} Prize, called after {bearers}, is awarded by {i}."),
        "street": ("{name} Street", "{name} Street is a street in {p}. Its name recalls {bearers}."),
        "museum": ("{name} Museum", "The {name} Museum in {p} is devoted to {bearers}."),
        "society": ("{name} Society", "The {name} Society is a club of admirers of {bearers}."),
        "school": ("{name} School", "{name} School in {p} is named in memory of {bearers}."),
        "ship": ("{name} (ship)", "The {name} was a steamer from {p}, christened after {bearers}."),
        "film": ("Searching for {name}", "Searching for {name} is a film by {b} about {bearers}."),
        "list": ("List of books about {name}", "This is a list of books about {name}, {bearers}."),
        "statue": ("Statue of {name}", "The statue of {name} in {p} shows {bearers}."),
    },
    "work": {
        "prize": ("{name} Award", "{name} Award, called after {bearers}, is given by {i}."),
        "festival": ("{name} Festival", "{name} Festival in {p} celebrates {bearers}."),
        "society": ("{name} Society", "{name} Society is a club of lovers of {bearers}."),
        "making": ("Making {name}", "Making {name} is a television series by {b} about {bearers}."),
        "list": ("List of editions of {name}", "This is a list of editions of {name}, {bearers}."),
        "ship": ("{name} (ship)", "{name} was a yacht from {p}, christened after {bearers}."),
        "inn": ("{name} Inn", "{name} Inn in {p} took its name from {bearers}."),
        "parody": ("Not {name}", "Not {name} is a parody by {b} of {bearers}."),
        "catalogue": ("Catalogue of {name}", "The catalogue of {name} by {b} deals with {bearers}."),
    },
    "place": {
        "station": ("{name} railway station", "{name} railway station serves {bearers}."),
        "club": ("{name} Rovers", "{name} Rovers are a football club from {bearers}."),
        "battle": ("Battle of {name}", "The Battle of {name} was fought near {bearers}."),
        "museum": ("{name} Museum", "The {name} Museum shows the past of {bearers}."),
        "newspaper": ("{name} Gazette", "The {name} Gazette was a newspaper for {bearers}."),
        "ship": ("{name} (ship)", "The {name} was a ferry built by {b}, called after {bearers}."),
        "list": ("List of people of {name}", "This is a list of people of {name}, {bearers}."),
        "tourism": ("Tourism in {name}", "Tourism in {name} is about visits to {bearers}."),
        "prize": ("{name} Prize", "The {name} Prize, called after {bearers}, is given by {i}."),
    },
}


@dataclass(frozen=True, slots=True)
class NamedAfter:
    page_id: int
    kind: str  # a key of NAMED_AFTER[entity.kind]
    title: str
    text: str


def draw_named_after(
    group: Sequence[Entity], size: int, rng: random.Random, names: NameMaker
) -> list[NamedAfter]:
    """`size` articles of different kinds about what is called after these namesakes.

    Each names every one of them with all its cues, in the words of questions: nobody can tell whom
    a ship is called after, and no namesake is easier to find than another.
    """
    own = NAMED_AFTER[group[0].kind]
    return [_draw(group, kind, rng, names) for kind in rng.sample(sorted(own), size)]


def _draw(group: Sequence[Entity], kind: str, rng: random.Random, names: NameMaker) -> NamedAfter:
    title, text = NAMED_AFTER[group[0].kind][kind]
    cues = ("sort", "decade", "country")
    bearers = [subject_phrase(entity, cues, rng) for entity in rng.sample(group, len(group))]
    slots = {"name": group[0].name, "bearers": ", or ".join(bearers)}
    for slot, draw in (("b", names.person), ("p", names.place), ("i", names.institution)):
        if "{" + slot + "}" in text:
            slots[slot] = draw()
    return NamedAfter(0, kind, title.format(**slots), text.format(**slots))
