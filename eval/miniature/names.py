"""Invented names: people, places, titles of works, institutions.

Names are drawn syllable by syllable, so that a reader cannot have met them before and has to
copy them from the passage. A `NameMaker` never gives the same name twice.
"""

from __future__ import annotations

import random

_ONSETS = "b br c d dr f fl g gr h j k l m n p r s st t th tr v w".split()
_VOWELS = "aeiou"
_CODAS = ("", "", "l", "m", "n", "r", "s", "t", "nd", "rk")
_GIVEN_ENDINGS = ("a", "e", "o", "is", "en", "an", "ine", "or", "ia", "us", "el", "ert")
_FAMILY_ENDINGS = ("son", "er", "ov", "ay", "ick", "ard", "owe", "ell", "ingham", "ane", "ud", "ett")
_PLACE_ENDINGS = (
    "ford", "by", "holm", "wick", "mouth", "ton", "vik", "stad", "garth", "mere", "haven", "os",
    "ira", "une", "dal", "burg",
)  # fmt: skip
_RIVER_ENDINGS = ("", "a", "e", "ne", "el", "ow")
_ADJECTIVES = (
    "Amber Ancient Ashen Bitter Blind Borrowed Brazen Broken Burning Clouded Copper Crimson "
    "Crooked Distant Drowned Dusty Empty Fallen Fading Forgotten Frozen Gentle Gilded Glass "
    "Golden Hidden Hollow Hungry Idle Iron Ivory Laughing Lonely Marble Narrow Nameless Painted "
    "Pale Patient Quiet Restless Sable Salted Scarlet Second Silent Silver Sleeping Stolen "
    "Sunken Tender Twisted Unlit Velvet Wandering Weary White Wild Winter Wooden"
).split()
_NOUNS = (
    "Anchor Apple Arrow Attic Balcony Barley Bell Bridge Candle Carriage Cathedral Clock Comet "
    "Compass Crow Curtain Daughter Door Drum Eagle Feather Ferry Fiddle Forest Fountain Garden "
    "Gate Glove Harbour Harvest Hearth Heron Horse Island Journey Key Kingdom Ladder Lantern "
    "Letter Lighthouse Mask Meadow Mill Mirror Moon Mountain Needle Nightingale Orchard Owl "
    "Palace Pilgrim Pillow River Road Rose Sailor Shepherd Staircase Stone Summer Tailor Thorn "
    "Tower Traveller Valley Violin Wagon Well Whale Widow Window Wolf"
).split()
INSTITUTIONS = (
    "Academy", "College", "Conservatory", "Foundation", "Guild", "Institute", "Lyceum",
    "Observatory", "Society", "Workshop",
)  # fmt: skip
BUILDINGS = ("Hall", "House", "Lodge", "Manor", "Palace", "Tower", "Court", "Abbey")


class NameMaker:
    """Draws names that differ from every name it gave before."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._given: set[str] = set()

    def person(self) -> str:
        return self._new(lambda: f"{self._word(1, _GIVEN_ENDINGS)} {self._word(1, _FAMILY_ENDINGS)}")

    def place(self) -> str:
        return self._new(lambda: self._word(self._rng.choice((1, 1, 2)), _PLACE_ENDINGS))

    def river(self) -> str:
        return self._new(lambda: self._word(2, _RIVER_ENDINGS))

    def work(self) -> str:
        return self._new(self._work)

    def institution(self) -> str:
        return self._new(lambda: f"{self._word(1, _PLACE_ENDINGS)} {self._rng.choice(INSTITUTIONS)}")

    def building(self) -> str:
        return self._new(lambda: f"{self._word(1, _FAMILY_ENDINGS)} {self._rng.choice(BUILDINGS)}")

    def near(self, name: str) -> str:
        """A name one letter away from `name`, for near-duplicates."""
        return self._new(lambda: self._mutate(name))

    def _new(self, draw) -> str:
        for _ in range(1000):
            name = draw()
            if name not in self._given:
                self._given.add(name)
                return name
        raise RuntimeError(f"no new name in 1000 draws; {len(self._given)} names given so far")

    def _word(self, syllables: int, endings: tuple[str, ...]) -> str:
        rng = self._rng
        parts = []
        for _ in range(syllables):
            syllable = rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS)
            parts.append("tho" if syllable == "the" else syllable)  # an encoder reads "the" in it
        ending = rng.choice(endings)
        if parts[-1][-1] in "aeiou" and ending[:1] in ("a", "e", "i", "o", "u"):
            parts.append(rng.choice("lmnrstvdk"))
        return ("".join(parts) + ending).capitalize()

    def _work(self) -> str:
        rng = self._rng
        adjective, noun, other = rng.choice(_ADJECTIVES), rng.choice(_NOUNS), rng.choice(_NOUNS)
        form = rng.randrange(5)
        if form == 0:
            return f"The {adjective} {noun}"
        if form == 1:
            return f"{adjective} {noun}"
        if form == 2:
            return f"The {noun} and the {other}" if noun != other else f"The {adjective} {noun}"
        if form == 3:
            return f"The {noun} of {self._word(1, _PLACE_ENDINGS)}"
        return f"A {noun} for {self._word(1, _GIVEN_ENDINGS)}"

    def _mutate(self, name: str) -> str:
        rng = self._rng
        letters = [i for i, c in enumerate(name) if c.isalpha() and c.islower()]
        at = rng.choice(letters)
        pool = "aeiou" if name[at] in "aeiou" else "bdfgklmnprstv"
        return name[:at] + rng.choice([c for c in pool if c != name[at]]) + name[at + 1 :]
