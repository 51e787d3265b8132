"""Which task belongs to which story, and how sure that is."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from raymond.loops.formats.prd import Story
from raymond.patterns import regex

Confidence: TypeAlias = Literal["high", "medium"]
BY_STORY, BY_TASK = "the story names it", "the task names it"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_WORD = regex(r"[^\W_]{3,}")
_STOP = frozenset(
    """
    able about add after all also and any are been before but can change check code could create did does done each
    else ensure file files fix for from get given had has have her his how implement into its make may more must new
    not now off one only our out over page per set should show some story such support task tasks test tests than that
    the their them then there they this too update use used user users using was want way were what when where which
    who will with work would you your
    """.split()
)
"""Words that most stories and tasks have."""
_MOST_WORDS = 60
"""Of a task that are looked at."""
_MOST_STORIES = 20
"""A word that more stories have says nothing about which one is meant."""
_FEWEST = 2
"""Words in common, at least."""
_LEAST = 5
"""What they weigh together, at least: one in both titles weighs 4, one in one title 2, any other 1."""
_COUNTED = 1 << 16
"""Beside the weight of words, a number holds how many they are."""


class Task(Protocol):
    """What of a task says to which story it belongs."""

    @property
    def id(self) -> str:
        """Such as `1.4.1`."""

    @property
    def title(self) -> str:
        """What its heading says."""

    @property
    def implements(self) -> tuple[str, ...]:
        """The stories that it names."""

    @property
    def body(self) -> str:
        """The text under its heading."""


class Link(Struct, frozen=True):
    """A task that belongs to a story."""

    story: str
    task: str
    confidence: Confidence
    why: str


class Dangling(Struct, frozen=True):
    """Something that is named and does not exist."""

    where: str
    """The story or task that names it."""
    names: str


class Links(Struct, frozen=True):
    """All of them, in the order of the stories, and what has none."""

    links: tuple[Link, ...]
    orphans: tuple[str, ...]
    """Tasks that belong to no story."""
    bare: tuple[str, ...]
    """Stories without tasks."""
    dangling: tuple[Dangling, ...]

    def of(self, story: str, *, medium: bool = True) -> tuple[str, ...]:
        """The tasks of a story; without `medium` only those that are named."""
        return tuple(one.task for one in self.links if one.story == story and (medium or one.confidence == "high"))

    def by_story(self) -> dict[str, list[Link]]:
        """The links of every story that has some."""
        found: dict[str, list[Link]] = {}
        for one in self.links:
            found.setdefault(one.story, []).append(one)
        return found

    def confidence(self, story: str) -> str:
        """How sure the tasks of a story are: `high`, `medium` or `none`."""
        return next((one.confidence for one in self.links if one.story == story), "none")


def find(stories: Sequence[Story], tasks: Sequence[Task]) -> Links:
    """Link tasks to stories: by name where one names the other, else by the words that they have in common.

    Words count only between a story and a task neither of which has a link by name.
    """
    named, dangling = _named(stories, tasks)
    linked = {one.task for links in named.values() for one in links}
    free = [one for one in stories if one.id not in named]
    for link in _alike(free, [one for one in tasks if one.id not in linked]):
        named.setdefault(link.story, []).append(link)
        linked.add(link.task)
    return Links(
        tuple(link for one in stories for link in named.get(one.id, ())),
        tuple(one.id for one in tasks if one.id not in linked),
        tuple(one.id for one in stories if one.id not in named),
        tuple(dangling),
    )


def _named(stories: Sequence[Story], tasks: Sequence[Task]) -> tuple[dict[str, list[Link]], list[Dangling]]:
    known = {one.id for one in stories}
    index = _index(tasks)
    found: dict[str, dict[str, Link]] = defaultdict(dict)
    dangling = []
    for story in stories:
        for name in story.implemented_by:
            ids = index.get(name, ())
            dangling += [] if ids else [Dangling(story.id, name)]
            for id in ids:
                found[story.id].setdefault(id, Link(story.id, id, "high", BY_STORY))
        dangling += [Dangling(story.id, name) for name in story.depends_on if name not in known]
    for task in tasks:
        for name in task.implements:
            if name not in known:
                dangling.append(Dangling(task.id, name))
            else:
                found[name].setdefault(task.id, Link(name, task.id, "high", BY_TASK))
    return {id: [*links.values()] for id, links in found.items() if links}, dangling


def _index(tasks: Iterable[Task]) -> dict[str, list[str]]:
    """The tasks that each name stands for."""
    index: dict[str, list[str]] = defaultdict(list)
    for task in tasks:
        numbers = task.id.split(".")
        names = [".".join(numbers[:count]) for count in range(1, len(numbers) + 1)]
        bare = task.id.rstrip(_LETTERS)  # `1.4.1` also stands for its fix `1.4.1a`
        for name in dict.fromkeys([*names, bare]):
            index[name].append(task.id)
    return index


def _alike(stories: Sequence[Story], tasks: Sequence[Task]) -> Iterator[Link]:
    index: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for at, story in enumerate(stories):
        title = words(story.title)
        for word in dict.fromkeys((*title, *words(f"{story.want} {' '.join(story.criteria)}"))):
            index[word].append((at, 2 if word in title else 1))
    most = min(_MOST_STORIES, max(1, len(stories) // 2))
    for task in tasks:
        title = words(task.title)
        said = list(islice(dict.fromkeys((*title, *words(task.body[:2000]))), _MOST_WORDS))
        weights: dict[int, int] = {}
        for word in said:
            where = index.get(word, ())
            times = 2 if word in title else 1
            for at, weight in where if len(where) <= most else ():
                weights[at] = weights.get(at, 0) + weight * times * _COUNTED + 1
        best = max(weights, key=weights.__getitem__, default=-1)
        if best >= 0 and weights[best] // _COUNTED >= _LEAST and weights[best] % _COUNTED >= _FEWEST:
            common = [word for word in said if len(where := index.get(word, ())) <= most and best in dict(where)]
            yield Link(stories[best].id, task.id, "medium", f"both say {', '.join(common[:3])}")


def words(text: str) -> dict[str, None]:
    """The words of a text that may tell what it is about, in their order."""
    return {word: None for word in _WORD.findall(text.casefold()) if word not in _STOP and not word.isdecimal()}
