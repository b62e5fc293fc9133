"""How the world is put into words: articles' sentences and questions, from `eval.miniature.wordings`."""

from __future__ import annotations

import random

from eval.miniature.facts import COUNTRIES, Entity
from eval.miniature.names import NameMaker
from eval.miniature.wordings import FACT_WORDS, SORT_WORDS

_PREDECESSOR = (
    "{b} had stepped down.", "The post had been vacated by {b}.", "{b} left it after a defeat.",
    "Before that it was in the hands of {b}.",
)  # fmt: skip

_FILLERS: dict[str, tuple[str, ...]] = {
    "person": (
        "A long quarrel with {b} filled the newspapers of {y}.",
        "{b} later wrote {his} biography.",
        "Letters to {b} survive in a private archive.",
        "In {y} {he} crossed the mountains on foot with {b}.",
        "{He} spoke five languages and kept bees.",
        "A street near the old market bears {his} name.",
        "{He} lost most of {his} papers in a fire in {y}.",
        "{His} sister {b} managed the accounts.",
        "{He} refused a medal in {y}.",
        "{b} paid for {his} early ventures.",
        "{He} died in {e} and was mourned by {b}.",
    ),
    "work": (
        "Critics of the time compared it with the work of {b}.",
        "A forged version by {b} came to light in {y}.",
        "It was forbidden for some months in {y}.",
        "{b} praised it in a newspaper.",
        "It was restored in {y} at great cost.",
        "An early sketch shows a different ending.",
        "It recalls the adventures of {b}.",
    ),
    "place": (
        "A flood in {y} destroyed the bridge.",
        "{b} stayed there in {y} and described the climate.",
        "The road to it was paved in {y}.",
        "Its fair is held every autumn.",
        "{b} wrote a song about it.",
        "Wool, salt and timber were traded there.",
        "In {y} it was sold to {b}.",
    ),
    "office": (
        "The term of office is {n} years.",
        "A reform proposed by {b} failed in {y}.",
        "The archives were moved in {y}.",
        "The salary has not changed since {y}.",
        "Complaints were heard by {b} until {y}.",
    ),
}

_OPENINGS: dict[str, tuple[str, ...]] = {
    "person": (
        "{name} ({year}\u2013{e}) was a {demonym} {sort}.",
        "{name} ({year}\u2013{e}) was a {sort} from {country}.",
        "{name}, born in {year}, was a {sort} of {country}.",
        "{name} (born {year}, died {e}) was a {demonym} {sort}.",
    ),
    "work": (
        "{name} is a {demonym} {sort} of {year}.",
        "{name} is a {sort} from {country}, completed in {year}.",
        "{name} is a {sort} made in {country} in {year}.",
    ),
    "place": (
        "{name} is a {sort} in {country}, founded in {year}.",
        "{name} is a {demonym} {sort} that dates from {year}.",
        "{name}, a {sort} of {country}, was established in {year}.",
    ),
    "office": (
        "The {title} is the {sort} of {name} in {country}, an office created in {year}.",
        "The {title}, in {country}, has been the {sort} since {year}.",
        "Since {year} the {title} has been the {demonym} {sort} of the district.",
    ),
}

_DECADE_CUES: dict[str, tuple[str, ...]] = {
    "person": ("born in the {d}", "whose life began in the {d}", "a child of the {d}"),
    "work": ("dating from the {d}", "that appeared in the {d}", "of the {d}"),
    "place": ("dating from the {d}", "founded in the {d}", "going back to the {d}"),
}
_COUNTRY_CUES = ("from {country}", "of {demonym} origin", "belonging to {country}")

_TENS = {
    0: "hundreds", 10: "tens", 20: "twenties", 30: "thirties", 40: "forties", 50: "fifties",
    60: "sixties", 70: "seventies", 80: "eighties", 90: "nineties",
}  # fmt: skip
_CENTURIES = {17: "seventeen", 18: "eighteen", 19: "nineteen"}


def article_sentences(
    entity: Entity,
    rng: random.Random,
    names: NameMaker,
    relations: tuple[str, ...] | None = None,
    fillers: int = 2,
    wordings: int = 99,
) -> list[str]:
    """The sentences of an article: an opening, then facts (all, or `relations`) and fillers mixed.

    The text an article has after cleaning is these sentences joined by spaces.
    """
    slots = _slots(entity, rng)
    body = []
    for relation in entity.facts if relations is None else relations:
        template = rng.choice(FACT_WORDS[relation][0][:wordings])
        sentence = _fill(template, rng, names, slots, a=entity.facts[relation])
        if relation == "holder" and entity.predecessor:
            before = _fill(rng.choice(_PREDECESSOR), rng, names, {**slots, "b": entity.predecessor})
            sentence = f"{sentence} {before}"
        body.append(sentence)
    for template in rng.sample(_FILLERS[entity.kind], min(fillers, len(_FILLERS[entity.kind]))):
        body.append(_fill(template, rng, names, slots))
    rng.shuffle(body)
    sort = rng.choice(SORT_WORDS[entity.sort][0])
    opening = _fill(
        rng.choice(_OPENINGS[entity.kind]), rng, names, slots,
        sort=sort, name=entity.name, title=entity.title, year=str(entity.year),
        country=entity.country, demonym=COUNTRIES[entity.country],
    )  # fmt: skip
    return [_fix_articles(opening), *body]


def question_text(
    entity: Entity, relation: str, cues: tuple[str, ...], rng: random.Random, wordings: int = 99
) -> str:
    """A question for one fact; `cues` are the attributes it names: "sort", "decade", "country"."""
    if entity.kind == "office":
        subject = f"{rng.choice(SORT_WORDS[entity.sort][1])} of {entity.name}"
    else:
        subject = _subject(entity, cues, rng)
    question = rng.choice(FACT_WORDS[relation][1][:wordings]).format(s=subject)
    return question.replace(",?", "?")


def subject_phrase(entity: Entity, cues: tuple[str, ...], rng: random.Random) -> str:
    """The entity as a question calls it, such as "the poet Mara Owe, born in the 1870s"."""
    return _subject(entity, cues, rng).removesuffix(",")


def _subject(entity: Entity, cues: tuple[str, ...], rng: random.Random) -> str:
    decade = decade_words(entity.decade, rng)
    every = {
        "sort": rng.choice(SORT_WORDS[entity.sort][1]),
        "decade": rng.choice(_DECADE_CUES[entity.kind]).format(d=decade),
        "country": rng.choice(_COUNTRY_CUES).format(
            country=entity.country, demonym=COUNTRIES[entity.country]
        ),
    }
    chosen = [every[cue] for cue in cues]
    rng.shuffle(chosen)
    if not chosen:
        return entity.name
    if every["sort"] in chosen and rng.random() < 0.5:
        chosen.remove(every["sort"])
        head = f"{every['sort']} {entity.name}"
        return f"{head}, {', '.join(chosen)}," if chosen else head
    return f"{entity.name}, {', '.join(chosen)},"


def decade_words(decade: int, rng: random.Random) -> str:
    """ "1870s" or, as often, "eighteen-seventies"."""
    if rng.random() < 0.5:
        return f"{decade}s"
    return f"{_CENTURIES[decade // 100]}-{_TENS[decade % 100]}"


def _slots(entity: Entity, rng: random.Random) -> dict[str, str]:
    he, his, him = {
        "he": ("he", "his", "him"), "she": ("she", "her", "her"), "it": ("it", "its", "it"),
    }[entity.pronoun]  # fmt: skip
    return {
        "he": he, "his": his, "him": him, "He": he.capitalize(), "His": his.capitalize(),
        "e": str(entity.year + rng.randrange(45, 85)), "h": str(entity.holder_since or ""),
        "from": str(entity.year + 19),
    }  # fmt: skip


def _fill(template: str, rng: random.Random, names: NameMaker, slots: dict[str, str], **more: str) -> str:
    values = {
        "y": str(int(slots["from"]) + rng.randrange(26)),
        "n": rng.choice(("three", "five", "seven")),
        **slots,
        **more,
    }
    if "{b}" in template and "b" not in values:
        values["b"] = names.person()
    return template.format(**values)


def _fix_articles(sentence: str) -> str:
    """ "a" before a vowel becomes "an"."""
    words = sentence.split(" ")
    for i, word in enumerate(words[:-1]):
        if word == "a" and words[i + 1][0].lower() in "aeio":
            words[i] = "an"
    return " ".join(words)


def later_section(entity: Entity, rng: random.Random, names: NameMaker) -> list[str]:
    """Sentences for a second section: bystanders and years, no fact that is asked for."""
    templates = list(_FILLERS[entity.kind]) + list(_LATER)
    rng.shuffle(templates)
    slots = _slots(entity, rng)
    return [_fill(template, rng, names, slots) for template in templates]


_LATER = (
    "In {y} the anniversary was kept with a dinner for ninety guests.",
    "A plaque unveiled by {b} was stolen in {y} and never found.",
    "The matter was discussed again in {y}, when {b} published a pamphlet.",
    "An exhibition of {y} drew large crowds.",
    "{b} gave a lecture on the subject.",
)
