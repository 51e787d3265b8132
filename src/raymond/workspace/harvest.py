"""Harvest: take the contents of the files in a tree, and nothing else.

Raymond walks the tree itself and compares each file with what it saw last; git gets contents and names. So nothing that
an agent wrote is a setting here: no `.git`, no attributes, no links, no pipes. Which new files count is decided by the
ignore rules of the base; new rules may hide more, but show nothing that was hidden.
"""

import errno
import marshal
import os
import re
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property

from msgspec import Struct

from raymond.errors import WorkspaceError
from raymond.system import folders
from raymond.system.files import contents, make_private, replace
from raymond.workspace.repository import Repository
from raymond.workspace.slot import Origin, Slot

Stat = tuple[int, int, int, int, int]
"""Mode, size, time of change, time of change of that, number: what differs when a content may differ."""
LARGEST = 1 << 30
"""Bytes of a file that is taken: a hole of a terabyte takes no room on a disk, and hours to read."""
_CONVERTING = ("text", "eol", "crlf", "filter", "ident", "working-tree-encoding")
"""The attributes that make the content of a file differ from that of its blob."""
_CONVERTS = re.compile(rb'^\tautocrlf = "(true|input)"$', re.MULTILINE | re.IGNORECASE)
"""In Raymond's own settings."""
_RESERVED = "a name that git keeps for itself"
_ODD = re.compile(rb"[^ -}]|[\\\\:]|git", re.IGNORECASE)
"""In every path that git may refuse: signs that some systems leave out, or read in another way."""
_UNSEEN = (0, 0, 0, 0, 0)
_NO_INDEX = "none"
"""A file that is not there: git would read rules from the index where there are none in the work tree."""
_SOME = 1 << 20
_PATIENCE = 5.0
"""Seconds for rules that an agent has written."""


class Harvest(Struct, frozen=True, dict=True):
    """What was taken."""

    repository: Repository
    base: Origin
    left: str
    """The tree of git with everything, also with what a step did to files that it is not to write."""
    left_out: list[tuple[str, str]]
    """New files and folders that were not taken, and why."""

    @cached_property
    def tree(self) -> str:
        """The tree with everything that counts: the files that only Raymond writes are as they were."""
        base, left = self.base, self.left
        if not base.kept or left == base.tree:
            return left
        changed = self.repository.changes(base.tree, left, base.kept)
        return self.repository.changed(left, {os.fsdecode(path): old for path, (old, _) in changed.items()})


class Survey(Struct):
    """How the files of a tree differ from what was seen last."""

    found: dict[bytes, Stat]
    """Every file that counts."""
    changed: list[bytes]
    missing: list[bytes]
    left_out: dict[bytes, str]
    hidden: list[bytes]
    """New files and folders that the ignore rules hide."""


def harvest(slot: Slot, base: Origin) -> Harvest:
    """Take what is in the tree now. The caller holds the slot alone."""
    repository = Repository(slot.git, slot.rules)
    index = _copy_index(slot)
    known, left = load_seen(slot)
    if not left:
        # After a kill, what was seen is older than the index, which has everything that was taken.
        known = {path: known.get(path, _UNSEEN) for path in _listed(repository, index)}
    skipped = frozenset(os.fsencode(path) for path in (*base.installed, *base.data))
    survey = look(os.fsencode(slot.tree), known, skipped, lambda paths: ignored(repository, slot.rules, paths))
    _apply_new_rules(slot, repository, survey, known)
    blobs = write_blobs(repository, slot.tree, slot.rules, survey.changed, survey.found, f"{slot.path}/links")
    lines = [b"0 %s\t%s\0" % (b"0" * len(base.commit), path) for path in survey.missing]
    lines += [b"%s %s\t%s\0" % (mode_of(survey.found[path]), blob, path) for path, blob in blobs.items()]
    if lines:
        repository.ask("update-index", "-z", "--index-info", given=b"".join(lines), index=index)
        odd = [path for path in blobs if _ODD.search(path)]
        for path in set(odd).difference(_listed(repository, index) if odd else ()):
            survey.left_out[path] = _RESERVED
            del survey.found[path]
    if lines or not left:
        left = repository.ask("write-tree", index=index).decode("ascii").strip()
    os.replace(f"{slot.git}/{index}", f"{slot.git}/index")
    save_seen(slot, survey.found, left)
    left_out = sorted((os.fsdecode(path), why) for path, why in survey.left_out.items())
    return Harvest(repository, base, left, left_out)


def left(slot: Slot) -> str:
    """The tree that was in the index when it was written last."""
    return load_seen(slot)[1] or Repository(slot.git, slot.rules).written()


def _copy_index(slot: Slot) -> str:
    """A copy of the index to work on: a lock that a killed git has left bars nobody, and nothing is half done."""
    for name in os.listdir(slot.git):
        if name.startswith("index."):
            os.unlink(f"{slot.git}/{name}")
    name = f"index.{os.urandom(4).hex()}"
    shutil.copyfile(f"{slot.git}/index", f"{slot.git}/{name}")
    return name


def _listed(repository: Repository, index: str) -> list[bytes]:
    return repository.ask("ls-files", "-z", index=index).split(b"\0")[:-1]


def load_seen(slot: Slot) -> tuple[dict[bytes, Stat], str]:
    """The files as they were seen last, and their tree; none if they are not the files in the index."""
    seen: dict[bytes, Stat]
    tree: str
    index, seen, tree = marshal.loads(contents(slot.seen))  # from a file, byte by byte, it takes ten times as long
    return seen, tree if index == _index_of(slot) else ""


def save_seen(slot: Slot, found: Mapping[bytes, Stat], tree: str) -> None:
    """Remember the files as they are; the index has them, as this tree."""
    replace(slot.seen, marshal.dumps((_index_of(slot), dict(found), tree)))


def _index_of(slot: Slot) -> tuple[int, int, int]:
    found = os.stat(f"{slot.git}/index")
    return found.st_ino, found.st_size, found.st_mtime_ns


def look(
    root: bytes,
    known: Mapping[bytes, Stat],
    skipped: Collection[bytes],
    hides: Callable[[list[bytes]], set[bytes]],
) -> Survey:
    """Compare the files below `root` with those that are `known`; new ones count unless a rule `hides` them."""
    survey = Survey({}, [], [], {}, [])
    folders_known = folders_of(known)
    pending = [b""]
    while pending:
        new_files: dict[bytes, Stat] = {}
        new_folders: list[bytes] = []
        while pending:
            prefix = pending.pop()
            try:
                entries = entries_of(os.path.join(root, prefix))
            except OSError as error:
                if error.errno != errno.ENAMETOOLONG:
                    raise
                survey.left_out[prefix] = "a path that is too long"
                continue
            for name, found in entries:
                path = prefix + name
                if path in skipped:
                    continue
                if stat.S_ISDIR(found.st_mode):
                    if _is_git(name):
                        if path != b".git":
                            survey.left_out[path + b"/"] = _RESERVED
                        continue
                    if path in folders_known:
                        pending.append(path + b"/")
                    else:
                        new_folders.append(path + b"/")
                    continue
                if not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
                    continue  # a pipe or a socket has no content
                now = seen(found)
                if path in known:
                    if known[path] != now:
                        survey.changed.append(path)
                    survey.found[path] = now
                else:
                    new_files[path] = now
        hidden = hides([*new_files, *new_folders]) if new_files or new_folders else set()
        survey.hidden += hidden
        for path, now in new_files.items():
            if path in hidden:
                continue
            survey.found[path] = now
            survey.changed.append(path)
        pending = [path for path in new_folders if path not in hidden]
    for path in survey.changed:
        if why := _unfit(path, survey.found[path]):
            survey.left_out[path] = why
            if path in known and stat.S_ISREG(survey.found[path][0]):
                survey.found[path] = known[path]  # it is there, so it has not been removed
            else:
                del survey.found[path]
    survey.changed = [path for path in survey.changed if path not in survey.left_out]
    survey.missing = [path for path in known if path not in survey.found]
    if skipped:
        carried = [path for path in survey.missing if not folders_of([path + b"/"]).isdisjoint(skipped)]
        survey.found |= {path: known[path] for path in carried}  # tracked files that are shown as the person has them
        survey.missing = [path for path in survey.missing if path not in survey.found]
    return survey


def seen(found: os.stat_result) -> Stat:
    """How a file is, as far as that shows whether its content may differ."""
    return found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def entries_of(path: bytes) -> list[tuple[bytes, os.stat_result]]:
    """What is in a folder, which an agent may have closed."""
    try:
        return _scanned(path)
    except PermissionError:
        os.chmod(path, 0o700)
        return _scanned(path)


def _scanned(path: bytes) -> list[tuple[bytes, os.stat_result]]:
    with os.scandir(path) as entries:
        return [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]


def _is_git(name: bytes) -> bool:
    """Whether git takes a name for that of a git directory, here or elsewhere."""
    return name.lower() in (b".git", b"git~1")


def _unfit(path: bytes, found: Stat) -> str:
    """Why git cannot have a file; empty when it can."""
    mode, size = found[:2]
    name = os.path.basename(path)
    if stat.S_ISLNK(mode):
        return "a link of this name" if name.lower() == b".gitmodules" else ""
    if _is_git(name):
        return _RESERVED
    return f"larger than {LARGEST >> 30} GiB" if size > LARGEST else ""


def folders_of(paths: Iterable[bytes]) -> set[bytes]:
    found: set[bytes] = set()
    for path in paths:
        while (at := path.rfind(b"/")) > 0:
            path = path[:at]
            if path in found:
                break
            found.add(path)
    return found


def mode_of(found: Stat) -> bytes:
    """The mode that git gives a file."""
    if stat.S_ISLNK(found[0]):
        return b"120000"
    return b"100755" if found[0] & 0o100 else b"100644"


def ignored(repository: Repository, rules: str, paths: list[bytes], *, seconds: float | None = None) -> set[bytes]:
    """Those of these paths that the ignore rules in a folder hide."""
    # Without the dot, a name could begin with a colon, which has a meaning for git.
    given = b"".join(b"./%s\0" % path for path in paths)
    said = repository.ask(
        *("check-ignore", "--no-index", "-z", "--stdin"),
        given=given,
        worktree=rules,
        index=_NO_INDEX,
        env={"GIT_LITERAL_PATHSPECS": "0"},
        fails=[1],
        seconds=seconds,
    )
    return {path.removeprefix(b"./") for path in said.split(b"\0") if path}


def _apply_new_rules(slot: Slot, repository: Repository, survey: Survey, known: Mapping[bytes, Stat]) -> None:
    """Leave out new files that only changed ignore rules hide: build products, most likely. What they show is named."""
    new = [path for path in survey.changed if path not in known]
    if not new and not survey.hidden:
        return
    before = _rule_files(slot.rules)
    now = f"{slot.path}/rules-now"
    copy_rules(slot.tree, now, before.keys() | {path for path in survey.found if _is_ignore_file(path)})
    if _rule_files(now) == before:
        return
    new_folders = [path + b"/" for path in folders_of(new) - folders_of(known)]
    try:
        hidden = ignored(repository, now, [*new, *new_folders], seconds=_PATIENCE)
        shown = set(survey.hidden).difference(ignored(repository, now, survey.hidden, seconds=_PATIENCE))
    except WorkspaceError:
        return  # an agent can write rules that take git for ever: then they do not count
    for path in hidden:
        survey.found.pop(path, None)
        if not any(folder + b"/" in hidden for folder in folders_of([path.rstrip(b"/")])):
            survey.left_out[path] = "hidden by a new ignore rule"
    survey.changed = [path for path in survey.changed if path not in hidden]
    for path in shown:
        survey.left_out[path] = "hidden by the ignore rules that the run began with"


def _is_ignore_file(path: bytes) -> bool:
    return os.path.basename(path) == b".gitignore"


def _rule_files(folder: str) -> dict[bytes, bytes]:
    """The ignore rules that were copied to a folder."""
    root = os.fsencode(folder)
    paths = [os.path.join(above, name) for above, _, names in os.walk(root) for name in names]
    return {os.path.relpath(path, root): contents(os.fsdecode(path)) for path in paths if _is_ignore_file(path)}


def copy_rules(tree: str, to: str, paths: Iterable[bytes]) -> None:
    """Copy files with rules for git, so that it reads them where nothing else is."""
    with folders.opened(os.path.dirname(to)) as above:
        folders.remove(os.path.basename(to), above)
    make_private(to)
    for path in paths:
        source, target = (os.path.join(os.fsencode(top), path) for top in (tree, to))
        if _is_file_below(tree, path):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            replace(os.fsdecode(target), contents(os.fsdecode(source)))


def _is_file_below(tree: str, path: bytes) -> bool:
    """Whether a path leads to a file in the tree: an agent may have put a link on the way."""
    whole = os.path.join(os.path.realpath(os.fsencode(tree)), path)
    try:
        return stat.S_ISREG(os.lstat(whole).st_mode) and os.path.realpath(whole) == whole
    except OSError:
        return False


def write_blobs(
    repository: Repository,
    tree: str,
    rules: str,
    paths: Iterable[bytes],
    found: Mapping[bytes, Stat],
    aside: str,
    *,
    keep: bool = True,
) -> dict[bytes, bytes]:
    """The blobs of files below `tree`; `keep` writes them. `rules` has the attributes that count."""
    paths = sorted(paths)
    if not paths:
        return {}
    if keep:
        for path in paths:
            if stat.S_ISREG(found[path][0]) and not found[path][0] & 0o400:
                os.chmod(os.path.join(os.fsencode(tree), path), stat.S_IMODE(found[path][0]) | 0o400)
    converted = _converted(repository, tree, rules, [path for path in paths if stat.S_ISREG(found[path][0])])
    write = ["-w"] if keep else []
    blobs: dict[bytes, bytes] = {}
    plain = [path for path in paths if path not in converted]
    make_private(aside)
    with folders.opened(aside) as fd:
        given = []
        for number, path in enumerate(plain):
            source = os.path.join(os.fsencode(tree), path)
            if stat.S_ISLNK(found[path][0]):
                folders.put(fd, str(number), os.readlink(source))
                source = os.fsencode(f"{aside}/{number}")
            given.append(_quoted(source))
        said = repository.ask("hash-object", *write, "--no-filters", "--stdin-paths", given=b"".join(given))
        blobs = dict(zip(plain, said.split(), strict=True))
        for name in os.listdir(fd):
            os.unlink(name, dir_fd=fd)
    for path in converted:
        # Git reads the attributes by the name, and the content from a pipe: it sees nothing else of the tree.
        content = contents(os.path.join(tree, os.fsdecode(path)), LARGEST)
        asked = ("hash-object", *write, "--stdin", "--path", os.fsdecode(path))
        said = repository.ask(*asked, given=content, worktree=rules, index=_NO_INDEX)
        blobs[path] = said.strip()
    return blobs


def _quoted(path: bytes) -> bytes:
    """A line with a path for git; it begins with a slash unless it is quoted."""
    if b"\n" not in path and not path.endswith(b"\r"):
        return path + b"\n"
    return b'"%s"\n' % path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")


def _converted(repository: Repository, tree: str, rules: str, paths: list[bytes]) -> set[bytes]:
    """The files whose blobs may differ from them, by the attributes in `rules` and the person's settings."""
    endings = set(paths) if _CONVERTS.search(contents(f"{repository.path}/config")) else set()
    filtered: set[bytes] = set()
    if not repository.has_attributes(rules):
        return {path for path in endings if _has_return(os.path.join(os.fsencode(tree), path))}
    asked, given = ("check-attr", "-z", "--stdin", *_CONVERTING), b"\0".join([*paths, b""])
    said = repository.ask(*asked, given=given, worktree=rules, index=_NO_INDEX).split(b"\0")
    for path, name, value in zip(said[0::3], said[1::3], said[2::3], strict=False):
        if value in (b"unspecified", b"unset"):
            continue
        (endings if name in (b"text", b"eol", b"crlf") else filtered).add(path)
    return filtered | {path for path in endings - filtered if _has_return(os.path.join(os.fsencode(tree), path))}


def _has_return(path: bytes) -> bool:
    """Whether a file has a carriage return: without one, no line ending is converted."""
    with open(path, "rb") as file:
        while piece := file.read(_SOME):
            if b"\r" in piece:
                return True
    return False
