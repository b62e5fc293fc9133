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
from eval.miniature.phrasing import subject_phrase

# kind of entity -> kind of article -> (title, what it is). {name} the name; {bearers} the
# namesakes, as a question would call them.
NAMED_AFTER: dict[str, dict[str, tuple[str, str]]] = {
    "person": {
        "prize": ("{name} Prize", "The {name} Prize is called after {bearers}."),
        "street": ("{name} Street", "{name} Street recalls {bearers}."),
        "museum": ("{name} Museum", "The {name} Museum is devoted to {bearers}."),
        "society": ("{name} Society", "The {name} Society is a club of admirers of {bearers}."),
        "school": ("{name} School", "{name} School is named in memory of {bearers}."),
        "ship": ("{name} (ship)", "The {name} was a steamer christened after {bearers}."),
        "film": ("Searching for {name}", "Searching for {name} is a film about {bearers}."),
        "list": ("List of books about {name}", "This is a list of books about {bearers}."),
        "statue": ("Statue of {name}", "The statue of {name} shows {bearers}."),
        "song": ("{name} (song)", "{name} is a song about {bearers}."),
        "stamp": ("{name} stamp", "The {name} stamp honours {bearers}."),
    },
    "work": {
        "prize": ("{name} Award", "{name} Award is called after {bearers}."),
        "festival": ("{name} Festival", "{name} Festival celebrates {bearers}."),
        "society": ("{name} Society", "{name} Society is a club of lovers of {bearers}."),
        "making": ("Making {name}", "Making {name} is a television series about {bearers}."),
        "list": ("List of editions of {name}", "This is a list of editions of {bearers}."),
        "ship": ("{name} (ship)", "{name} was a yacht christened after {bearers}."),
        "inn": ("{name} Inn", "{name} Inn took its name from {bearers}."),
        "parody": ("Not {name}", "Not {name} is a parody of {bearers}."),
        "catalogue": ("Catalogue of {name}", "The catalogue of {name} deals with {bearers}."),
        "song": ("{name} (song)", "{name} is a song about {bearers}."),
        "stamp": ("{name} stamp", "The stamp honours {bearers}."),
    },
    "place": {
        "station": ("{name} railway station", "{name} railway station serves {bearers}."),
        "club": ("{name} Rovers", "{name} Rovers are a football club from {bearers}."),
        "battle": ("Battle of {name}", "The Battle of {name} was fought near {bearers}."),
        "museum": ("{name} Museum", "The {name} Museum shows the past of {bearers}."),
        "newspaper": ("{name} Gazette", "The {name} Gazette was a newspaper for {bearers}."),
        "ship": ("{name} (ship)", "The {name} was a ferry called after {bearers}."),
        "list": ("List of people of {name}", "This is a list of people of {bearers}."),
        "tourism": ("Tourism in {name}", "Tourism in {name} is about visits to {bearers}."),
        "prize": ("{name} Prize", "The {name} Prize is called after {bearers}."),
        "song": ("{name} (song)", "{name} is a song about {bearers}."),
        "stamp": ("{name} stamp", "The {name} stamp honours {bearers}."),
    },
}


@dataclass(frozen=True, slots=True)
class NamedAfter:
    page_id: int
    kind: str  # a key of NAMED_AFTER[entity.kind]
    title: str
    text: str


def draw_named_after(group: Sequence[Entity], size: int, rng: random.Random) -> list[NamedAfter]:
    """`size` articles of different kinds about what is called after these namesakes.

    Each names every one of them with all its cues, in the words of questions: nobody can tell whom
    a ship is called after, and no namesake is easier to find than another.
    """
    own = NAMED_AFTER[group[0].kind]
    return [_draw(group, kind, rng) for kind in rng.sample(sorted(own), size)]


def _draw(group: Sequence[Entity], kind: str, rng: random.Random) -> NamedAfter:
    title, text = NAMED_AFTER[group[0].kind][kind]
    cues = ("sort", "decade", "country")
    bearers = [subject_phrase(entity, cues, rng) for entity in rng.sample(group, len(group))]
    slots = {"name": group[0].name, "bearers": ", or ".join(bearers)}
    return NamedAfter(0, kind, title.format(**slots), text.format(**slots))
