"""`python -m eval.miniature.world`: write an encyclopaedia, two snapshots of it, and questions.

    dump-2016.xml.bz2  dump-2018.xml.bz2     MediaWiki XML; office holders differ
    questions/{train,dev,test}.jsonl         the "custom" format, with gold pages
    questions/leaders_{2016,2018}.jsonl      the same questions, answered by either snapshot
    questions/tasks/*.jsonl                  with --tasks: the paper's tasks (`eval.miniature.tasks`)
    world.json                               seed, counts, SHA-256 of every file

Articles come in groups: namesakes, and what is named after them (`eval.miniature.named_after`).
A group belongs to one split as a whole: what test questions ask about, train questions never
mention. All articles are in both dumps.
"""

from __future__ import annotations

import argparse
import bz2
import hashlib
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from beam_jobs.options import Parser
from eval.miniature.facts import KINDS, Entity, change_holder, draw_namesakes
from eval.miniature.named_after import NamedAfter, draw_named_after
from eval.miniature.names import NameMaker
from eval.miniature.questions import ask, ask_group
from eval.miniature.tasks import with_tasks
from eval.miniature.wikitext import (
    WikiPage,
    article_page,
    disambiguation_page,
    dump_lines,
    named_after_page,
    redirect_page,
)
from rag_core.errors import DataError, UsageError, run_command
from rag_core.files import read_object

MIN_ARTICLES = 200

# kind -> share of the articles, namesakes to a name, articles named after them. The numbers are
# chosen so that frozen MiniLM finds the passage of 50-80% of the test questions among its first
# five (docs/mini-bart.md). Offices have nothing named after them: their retrieval is easy, and the
# exchange of the index shows what the generator makes of it.
SHARES = {"person": 0.66, "work": 0.12, "place": 0.08, "office": 0.14}
NAMESAKES = {"person": 2, "work": 2, "place": 2, "office": 2}
N_NAMED_AFTER = {"person": 11, "work": 11, "place": 11, "office": 0}
NEAR_DUPLICATES = 0.15  # share of groups whose name is one letter away from another group's
LONG_ARTICLES = 0.10
CHANGED_OFFICES = 0.76
SPLITS = {"train": 0.30, "dev": 0.03, "test": 0.67}
TEST_QUESTIONS = 600  # aimed at; smaller worlds ask more facts per entity for it
TRAIN_PER_FACT = 3  # wordings in which train questions ask for each fact
FIRST_PAGE_ID = 101


@dataclass(frozen=True, slots=True)
class World:
    seed: int
    groups: list[tuple[str, list[Entity]]]  # (split, namesakes); split "leaders" for changed offices
    named_after: list[NamedAfter]
    changed: dict[int, Entity]  # page id -> the office in 2018
    questions: dict[str, list[dict]] = field(default_factory=dict)

    @property
    def entities(self) -> list[Entity]:
        return [entity for _, group in self.groups for entity in group]


def build_world(articles: int = 3000, seed: int = 0) -> World:
    """The world of a seed: the same for the same arguments on every machine."""
    if articles < MIN_ARTICLES:
        raise ValueError(f"articles={articles}: a world needs at least {MIN_ARTICLES}")
    rng = random.Random(f"{seed}:world")
    names = NameMaker(random.Random(f"{seed}:names"))
    groups, named_after = _draw_groups(articles, rng, names)
    page_ids = list(range(FIRST_PAGE_ID, FIRST_PAGE_ID + articles))
    rng.shuffle(page_ids)
    numbers = iter(page_ids)
    groups = [[replace(e, page_id=next(numbers)) for e in group] for group in groups]
    named_after = [replace(a, page_id=next(numbers)) for a in named_after]
    split_groups = _split(groups, rng)
    changed = {
        entity.page_id: change_holder(entity, rng, names)
        for split, group in split_groups
        if split == "leaders"
        for entity in group
    }
    world = World(seed, split_groups, named_after, changed)
    world.questions.update(_questions(world, rng))
    return world


def _draw_groups(
    articles: int, rng: random.Random, names: NameMaker
) -> tuple[list[list[Entity]], list[NamedAfter]]:
    groups: list[list[Entity]] = []
    named_after: list[NamedAfter] = []
    for kind in KINDS:
        left = round(articles * SHARES[kind])
        if kind == KINDS[-1]:
            left = articles - sum(map(len, groups)) - len(named_after)
        earlier: list[str] = []
        while left > 0:
            name = None
            if earlier and rng.random() < NEAR_DUPLICATES:
                name = names.near(rng.choice(earlier))
            group = draw_namesakes(kind, min(left, NAMESAKES[kind]), rng, names, name, shared=0)
            groups.append(group)
            earlier.append(group[0].name)
            left -= len(group)
            if n_after := min(left, N_NAMED_AFTER[kind]):
                named_after += draw_named_after(group, n_after, rng)
                left -= n_after
    return groups, named_after


def _split(groups: list[list[Entity]], rng: random.Random) -> list[tuple[str, list[Entity]]]:
    """A split for every group, in the wanted proportion within every kind."""
    out = []
    for kind in KINDS:
        own = [group for group in groups if group[0].kind == kind]
        rng.shuffle(own)
        if kind == "office":
            n_changed = round(len(own) * CHANGED_OFFICES)
            out += [("leaders", group) for group in own[:n_changed]]
            own = own[n_changed:]
        n_test, n_dev = round(len(own) * SPLITS["test"]), max(1, round(len(own) * SPLITS["dev"]))
        for i, group in enumerate(own):
            split = "test" if i < n_test else "dev" if i < n_test + n_dev else "train"
            out.append((split, group))
    return out


def _questions(world: World, rng: random.Random) -> dict[str, list[dict]]:
    rows: dict[str, list[dict]] = {}
    for split in SPLITS:
        own = [group for name, group in world.groups if name == split]
        n_entities = sum(map(len, own))
        per_entity = {"train": 5, "dev": 2}.get(split, -(-TEST_QUESTIONS // n_entities))
        per_fact = TRAIN_PER_FACT if split == "train" else 1
        asked = [row for group in own for row in ask_group(group, per_entity, rng, split, per_fact)]
        rng.shuffle(asked)
        rows[split] = asked
    rows["leaders_2016"], rows["leaders_2018"] = [], []
    for split, group in world.groups:
        if split == "leaders":
            for entity in group:
                row = ask(entity, "holder", group, rng, f"leader-{entity.page_id}")
                later = world.changed[entity.page_id].facts["holder"]
                rows["leaders_2016"].append(row)
                rows["leaders_2018"].append({**row, "answers": [later]})
    return rows


def snapshot(world: World, year: int) -> list[WikiPage]:
    """The pages of 2016 or 2018 in order of page id."""
    rng = random.Random(f"{world.seed}:pages")
    pages = []
    extra_id = FIRST_PAGE_ID + len(world.entities) + len(world.named_after)
    for _, group in world.groups:
        for entity in group:
            long = rng.random() < LONG_ARTICLES
            now = world.changed.get(entity.page_id, entity) if year >= 2018 else entity
            pages.append(article_page(now, world.seed, long=long))
            if entity.kind == "person" and rng.random() < 0.1:
                given, family = entity.name.split(" ")
                alias = f"{family}, {given} ({entity.year})"
                pages.append(redirect_page(extra_id, alias, entity.title))
                extra_id += 1
        if len(group) > 1 and group[0].kind != "office":
            pages.append(disambiguation_page(extra_id, group))
            extra_id += 1
            pages.append(
                WikiPage(extra_id, f"Talk:{group[0].name}", "Which of them is it? ~~~~", namespace=1)
            )
            extra_id += 1
    pages += [named_after_page(article.page_id, article.title, article.text) for article in world.named_after]
    pages.append(WikiPage(extra_id, "Template:Reflist", "<references />", namespace=10))
    return sorted(pages, key=lambda page: page.page_id)


def write_world(world: World, output: Path, overwrite: bool = False) -> dict:
    """Write both dumps, the questions and `world.json`, that last; returns what `world.json` says.

    Where the same world lies already nothing is written; a directory with anything else is refused
    (FileExistsError), but for the beginnings of a run that was stopped and, with `overwrite`, another world.
    Raises DataError where `world.json` is damaged.
    """
    files: dict[str, bytes] = {}
    for year in (2016, 2018):
        lines = dump_lines(snapshot(world, year), "Miniature", f"{year}-12-20T00:00:00Z")
        files[f"dump-{year}.xml.bz2"] = bz2.compress("".join(lines).encode())
    for name, rows in world.questions.items():
        files[f"questions/{name}.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows).encode()
    about = {
        "seed": world.seed,
        "articles": len(world.entities) + len(world.named_after),
        "kinds": dict(Counter(entity.kind for entity in world.entities)),
        "named_after": dict(Counter(article.kind for article in world.named_after)),
        "entities_by_split": dict(Counter(s for s, group in world.groups for _ in group)),
        "questions": {name: len(rows) for name, rows in world.questions.items()},
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }
    ending = output / "world.json"
    before = read_object(str(ending)) if ending.exists() else {}
    if before == about:
        return about
    ours = {*files, ending.name, *before.get("sha256", ())} if overwrite else files.keys()
    there = {p.relative_to(output).as_posix() for p in output.rglob("*") if p.is_file()}
    if not there <= ours:
        raise FileExistsError(
            f"{output} is not empty and holds no part of this world; give a new directory"
            + (", or --overwrite for another world" if before and not overwrite else "")
        )
    for name in sorted(there - files.keys(), key=lambda name: name != ending.name):
        (output / name).unlink()
    for name, data in files.items():
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        (output / name).write_bytes(data)
    ending.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return about


def main(argv: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m eval.miniature.world", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--output", type=Path, required=True, help="a new directory")
    parser.add_argument("--articles", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tasks", action="store_true", help="also the sets of the paper's tasks")
    parser.add_argument("--overwrite", action="store_true", help="another world in DIR gives way")
    args = parser.parse_args(argv)
    try:
        world = build_world(args.articles, args.seed)
        about = write_world(with_tasks(world) if args.tasks else world, args.output, args.overwrite)
    except DataError:
        raise
    except (ValueError, FileExistsError) as error:
        raise UsageError(str(error)) from error
    counts = ", ".join(f"{name} {n}" for name, n in about["questions"].items())
    print(f"{about['articles']} articles; questions: {counts}")
    print(
        f"world written to {args.output}; next: python -m beam_jobs.split "
        f"--input {args.output}/dump-2016.xml.bz2 --output PASSAGES"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
