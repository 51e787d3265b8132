"""Attacks from inside of a workspace, in one table; after each of them nothing of the person's has changed."""

import pytest

from pace import mostly_slow
from workspace.person import KINDS, Person, moved_in

GUARD = "mountpoint -q {project} && [ ! -e {home}/.bashrc ] && [ $$ -lt 100 ] || exit 99"
"""Where a step is not isolated at all, no attack is tried: some of them would end the machine."""
ATTACKS = {
    # git
    "amend": "git commit -q --amend --allow-empty -m forged",
    "orphan history": "git checkout -q --orphan x && git commit -qam x && git branch -M main",
    "moved branches and tags": "git branch -f kept HEAD~0; git update-ref refs/heads/kept 0000000000000000000000000000000000000000; git tag -f v1; git tag -d v1; git branch -D kept",
    "dropped stash": "git stash drop; git stash clear; git reflog expire --expire=all --all; git gc -q --prune=now",
    "removed references": "rm -rf .git/refs .git/packed-refs; rm -rf .git/logs",
    "hooks": "mkdir -p .git/hooks; for one in pre-commit post-commit reference-transaction post-checkout post-index-change; do printf '#!/bin/sh\\ntouch {other}/ran {home}/ran\\n' > .git/hooks/$one; chmod +x .git/hooks/$one; done; git commit -q --allow-empty -m x",
    "hooks elsewhere": "git config core.hooksPath $PWD/hooks; mkdir hooks; printf '#!/bin/sh\\ntouch {other}/ran\\n' > hooks/reference-transaction; chmod +x hooks/*; git config --global core.hooksPath $PWD/hooks",
    "fsmonitor": "git config core.fsmonitor 'touch {other}/ran;'; git config core.pager 'touch {other}/ran;'; git config alias.add '!touch {other}/ran'",
    "global settings": "git config --global user.name forged; printf '[core]\\nfsmonitor = touch {other}/ran\\n' >> {home}/.gitconfig; echo x >> {home}/.config/git/config",
    "replace references": "git replace HEAD $(git commit-tree -m x HEAD^{{tree}}); git replace -f HEAD:README HEAD:.gitignore",
    "grafts": "mkdir -p .git/info; echo $(git rev-parse HEAD) > .git/info/grafts",
    "shallow": "git rev-parse HEAD > .git/shallow",
    "assume-unchanged": "git update-index --assume-unchanged README; git update-index --skip-worktree .gitignore; echo x > README",
    "locks": "touch .git/index.lock .git/HEAD.lock .git/config.lock .git/packed-refs.lock .git/refs/heads/main.lock; touch {project}/.git/index.lock",
    ".git removed": "rm -rf .git",
    ".git linked elsewhere": "rm -rf .git; ln -s {other}/.git .git; git commit -q --allow-empty -m x; git update-ref refs/heads/forged HEAD",
    ".git as a file": "rm -rf .git; echo 'gitdir: {other}/.git' > .git; git commit -q --allow-empty -m x",
    "work tree elsewhere": "git config core.worktree {other}; git checkout -qf; git reset -q --hard; git clean -fdxq",
    "forged objects": "for one in /run/raymond/objects/??/*; do chmod u+w $one; echo forged > $one; rm -f $one; done; mkdir -p .git/objects/aa; echo x > .git/objects/aa/$(printf %038d 0)",
    "alternates": "echo {other}/.git/objects > .git/objects/info/alternates; git gc -q --prune=now; git repack -adq",
    "push by force": "git push -q --force origin HEAD:main; git push -q origin :main; git push -q --mirror {remote}; git push -q {other} HEAD:refs/heads/forged",
    "worktrees": "git worktree add -q /tmp/w; git worktree add -q {other}/w; git -C {other} worktree add -q /tmp/w2; git -C {other} worktree prune",
    "half a rebase": "echo 1 > a; git add a; git commit -qm a; git checkout -q -b x HEAD~1; echo 2 > a; git add a; git commit -qm b; git rebase -q main",
    "half a merge": "echo 1 > a; git add a; git commit -qm a; git checkout -q -b x HEAD~1; echo 2 > a; git add a; git commit -qm b; git merge -q main",
    "a submodule": "git init -q sub; git -C sub commit -q --allow-empty -m x; git add sub; printf '[submodule \"s\"]\\npath = sub\\nurl = ext::sh -c touch% {other}/ran\\n' > .gitmodules",
    "bombs of attributes": "printf '* filter=x diff=x merge=x\\n' > .gitattributes; git config filter.x.clean 'touch {other}/ran'; git config filter.x.smudge 'touch {other}/ran'",
    "references of Raymond": "git update-ref refs/raymond/r/tip HEAD; git update-ref refs/raymond/other/base HEAD; git push -q {project} HEAD:refs/heads/forged",
    # files
    "a link to keys": "ln -s {home}/.ssh keys; ln -s {home}/.ssh/id id; cat keys/id id; echo x >> id; rm -rf keys/*",
    "links out of the tree": "rm -rf src; ln -s {other} src; echo x > src/README; rm -rf src/*; ln -s {project}/.git/config c; ln -s / root",
    "hard links": "ln {other}/README hard; ln /etc/passwd passwd; ln {home}/.bashrc rc; echo x >> hard",
    "same size and time": "touch -r README /tmp/t; printf 'RAED me\\n' > README; touch -r /tmp/t README",
    "pipes": "mkfifo .gitattributes pipe; rm -f .gitignore; mkfifo .gitignore; mkdir d; mkfifo d/.gitignore",
    "names that are not text": "mkfifo \"$(printf 'a\\377b')\"; mkdir \"$(printf '\\377')\"; echo x > \"$(printf '\\377/\\033[31m\\nx')\"; touch 'refs/x' -- -rf ':(top)' .git.",
    "closed files": "chmod 0 README src; mkdir shut; touch shut/x; chmod 0 shut; chmod 0 .",
    "other rights": "chmod -R 7777 .; chown -R 0:0 . ; chown -R 12345 src",
    "marks of an overlay": "setfattr -n user.overlay.whiteout -v y README; setfattr -n trusted.overlay.opaque -v y src; mknod gone c 0 0",
    "removal of everything": "rm -rf {home} {other} {remote} {folder} {project}/* {project}/.git",
    "the start of a shell": "echo 'touch {other}/ran' >> {home}/.bashrc; echo x > {home}/.profile; mkdir -p {home}/.config/systemd",
    "the home of Raymond": "rm -rf $RAYMOND_HOME; echo x > {raymond}/x; find / -name journal.jsonl 2>/dev/null -exec sh -c 'echo x >> $1' sh {{}} ';'",
    "own files of the step": "rm -rf $(dirname $RAYMOND_OUT)/*; ln -s {other}/README $RAYMOND_OUT; ln -s {home}/.bashrc $(dirname $RAYMOND_OUT)/1.input",
    # the machine
    "root of the first process": "echo x > /proc/1/root{other}/README; echo x > /proc/self/root{other}/README; for one in /proc/[0-9]*; do echo x > $one/root{other}/README; echo x > $one/cwd/README; done",
    "processes left behind": "(setsid sh -c 'while :; do echo x >> {other}/README; echo x >> README; sleep 0.01; done' >/dev/null 2>&1 &)",
    "umount": "umount -l {project}; umount -l {home}; umount -l /tmp; echo x > {home}/.bashrc",
    "remount": "mount -o remount,rw /; mount -o remount,rw,bind {other}; echo x > {other}/README",
    "nested namespaces": "unshare -Urm sh -c 'umount -l {project}; umount -l {home}; mount -o remount,rw /; echo x > {project}/README; echo x > {other}/README; echo x > {home}/.bashrc'",
    "kill": "kill -9 -1; kill -9 $PPID; for n in $(seq 2 50); do kill -9 $n; done",
    "ptrace": "python3 -c 'import ctypes; ctypes.CDLL(None).ptrace(16, 1, 0, 0); open(\"/proc/1/mem\", \"wb\").write(b\"x\")'",
    "settings of the kernel": "for one in /proc/sys/kernel/core_pattern /proc/sysrq-trigger /sys/kernel/uevent_helper; do : >> $one && echo x > {other}/README; done",
    "a crash": "ulimit -c unlimited; kill -SEGV $$",
    "too much output": "head -c 3000000 /dev/zero | tr '\\0' '\\n'; yes | head -c 100000 > big; seq 3000 | xargs -I@ touch f@",
}  # fmt: skip


@pytest.mark.parametrize("attack", mostly_slow(ATTACKS, daily=1))
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_the_person_s_changes(kind: str, attack: str) -> None:
    with moved_in(kind) as person:
        begun(person)
        before = person.possessions()
        places = {"project": person.project, "home": person.home, "other": person.folder / "other"}
        places |= {"folder": person.folder, "remote": person.folder / "remote.git", "raymond": person.raymond_home}
        script = f"exec 2>/dev/null\n{GUARD}\n{ATTACKS[attack]}".format(**places)
        done = person.run(script)
        assert done.returncode in (0, 1), done.stderr
        assert "exit code 99" not in done.stderr, "the step was not isolated"
        assert "not saved" not in done.stderr, done.stderr
        assert person.possessions() == before
        person.raymond("clean", "r", "--force")
        assert person.possessions() == before
        assert list(person.raymond_home.rglob("runs/r")) == []


def begun(person: Person) -> None:
    """A project with all that an attack could be after, and another run that has ended."""
    person.begin().furnish()
    person.write(".env", "KEY=secret\n", 0o600)
    person.write("node_modules/x/index.js", "1\n")
    person.raymond("run", person.flow("echo '<result>x</result>'", name="flow/earlier"), "--id", "earlier")
