"""Rule 6: inside, the home is empty but for programs on the PATH, caches, and what `lend:` names."""

import os
import socket
import sys
import tempfile
from pathlib import Path

import pytest

from workspace.person import Person, daily

PROGRAM = "#!/bin/sh\necho works\n"


def listed(person: Person, **given: object) -> list[str]:
    """Every file in the home of a step, relative to it."""
    said = person.inside('cd ~ && find . -type f -o -type l -o -type s | sed "s,^./,," | sort', **given)
    return said.splitlines()


def path(*folders: Path | str) -> dict[str, str]:
    return {"PATH": ":".join([*map(str, folders), "/usr/bin", "/bin"])}


@daily
def test_the_home_is_empty(person: Person) -> None:
    person.begin().furnish()
    assert listed(person, environment=path()) == []
    assert person.inside("echo ~; id -u") == f"{person.home}\n{person.user}\n"


def test_programs_on_the_path_run_wherever_they_are_in_the_home(person: Person) -> None:
    person.begin().furnish()
    home = person.home
    person.write(home / "bin/one", PROGRAM, 0o755)
    person.write(
        home / ".local/share/two/bin/two", '#!/bin/sh\ncat "$(dirname "$(readlink -f "$0")")/../lib/two"\n', 0o755
    )
    person.write(home / ".local/share/two/lib/two", "works\n")
    person.write(home / ".tool/bin/three", '#!/bin/sh\ncat "$(dirname "$0")/../lib/three"\n', 0o755)
    person.write(home / ".tool/lib/three", "works\n")
    person.sh("mkdir -p ~/.local/bin && ln -s ~/.local/share/two/bin/two ~/.local/bin/two")
    person.sh(f"'{sys.executable}' -m venv --without-pip ~/venvs/four")
    modules = home / "npm/node_modules"
    person.write(
        modules / "@x/five/bin/five", '#!/bin/sh\ncat "$(dirname "$(readlink -f "$0")")/../../six/lib"\n', 0o755
    )
    person.write(modules / "@x/five/package.json", "{}\n")
    person.write(modules / "@x/six/lib", "works\n")
    person.sh("mkdir ~/npm/node_modules/.bin && ln -s ../@x/five/bin/five ~/npm/node_modules/.bin/five")
    folders = path(home / "bin", home / ".local/bin", home / ".tool/bin", home / "venvs/four/bin", modules / ".bin")
    said = person.inside("one; two; three; five; python -c 'import sys; print(sys.prefix)'", environment=folders)
    assert said == f"works\nworks\nworks\nworks\n{home}/venvs/four\n"
    found = listed(person, environment=folders)
    known = ("bin/", ".local/", ".tool/", "venvs/four/", "npm/node_modules/")
    assert [one for one in found if not one.startswith(known)] == []
    script = (
        "for one in ~/bin ~/.local/bin ~/.tool ~/.local/share/two ~/venvs/four; do touch $one/x 2>&- && echo $one; done"
    )
    assert person.inside(f"{script}; true", environment=folders) == ""


@pytest.mark.parametrize(
    "where", ["the home", "a link to a file right in the home", "a broad folder", "above the home"]
)
def test_a_path_that_leads_to_the_home_itself_does_not_show_it(person: Person, where: str) -> None:
    person.begin().furnish()
    person.write(person.home / "tool", PROGRAM, 0o755)
    person.write(person.home / ".config/tool", PROGRAM, 0o755)
    person.write(person.home / ".config/app/token", "secret\n", 0o600)
    person.write(person.folder / "tool", PROGRAM, 0o755)
    person.sh("mkdir ~/bin; ln -s ~/tool ~/bin/tool")
    folder = {
        "the home": person.home,
        "a link to a file right in the home": person.home / "bin",
        "a broad folder": person.home / ".config",
        "above the home": person.folder,
    }[where]
    assert person.inside("tool", environment=path(folder)) == "works\n"
    shown = {"the home": {"tool"}, "a broad folder": {".config/tool"}, "above the home": set()}
    assert set(listed(person, environment=path(folder))) == shown.get(where, {"bin/tool", "tool"})


def test_a_folder_of_programs_in_a_hidden_place_does_not_show_the_place(person: Person) -> None:
    person.begin().furnish()
    person.write(person.raymond_home / "bin/tool", PROGRAM, 0o755)
    person.write(person.raymond_home / "secret", "secret\n")
    secret = Path(tempfile.mkdtemp(prefix="raymond-secret-", dir="/tmp"))
    script = f"tool; ls -A '{person.raymond_home}'; touch /tmp/x && ls -d /tmp/x {secret} 2> /dev/null; true"
    environment = {**path(person.raymond_home / "bin", "/tmp"), "TMPDIR": "/tmp"}
    try:
        said = person.inside(script, environment=environment)
    finally:
        secret.rmdir()
    assert said == "works\nbin\n/tmp/x\n"


def test_programs_of_the_project_are_those_of_the_tree(person: Person) -> None:
    person.project = person.home / "project"
    person.begin({"tools/tool": PROGRAM})
    (person.project / "tools/tool").chmod(0o755)
    person.write("node_modules/.bin/other", PROGRAM, 0o755)
    person.make_tree()
    person.write("tools/tool", "#!/bin/sh\necho person\n", 0o755)
    folders = path(person.project / "tools", person.project / "node_modules/.bin")
    script = (
        "tool; other; echo agent > tools/new; echo agent > node_modules/.bin/new; cat tools/new node_modules/.bin/new"
    )
    assert person.inside(script, environment=folders) == "works\nworks\nagent\nagent\n"
    assert not (person.project / "tools/new").exists()
    assert not (person.project / "node_modules/.bin/new").exists()


def test_private_files_beside_a_folder_of_programs_are_hidden(person: Person) -> None:
    person.begin()
    person.write(person.home / ".cargo/bin/tool", PROGRAM, 0o755)
    person.write(person.home / ".cargo/credentials.toml", "secret\n", 0o600)
    person.write(person.home / ".cargo/config.toml", "shown\n", 0o644)
    said = person.inside("tool; cat ~/.cargo/credentials.toml ~/.cargo/config.toml", environment=path(person.home / ".cargo/bin"))  # fmt: skip
    assert said == "works\nshown\n"


def test_variables_with_secrets_are_gone_and_lent_ones_are_there(person: Person) -> None:
    person.begin()
    given = dict.fromkeys(("API_TOKEN", "GITHUB_TOKEN", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY"), "secret")
    given |= {
        "GIT_ASKPASS": "secret",
        "SSH_AUTH_SOCK": "/secret",
        "DBUS_SESSION_BUS_ADDRESS": "secret",
        "PLAIN": "kept",
    }
    assert person.inside("env | grep -E '=(secret|kept)'", environment=given) == "PLAIN=kept\n"
    given["DATABASE_URL"] = "postgres://me:secret@localhost/db"
    said = person.inside("env | grep -E '[=:]secret|=kept' | sort", environment=given, lend=["API_TOKEN", "gh"])
    assert said == "API_TOKEN=secret\nGITHUB_TOKEN=secret\nPLAIN=kept\n"


def test_what_is_lent_of_the_home_is_there_and_read_only(person: Person) -> None:
    person.begin().furnish()
    person.write(person.home / ".aws/credentials", "lent\n", 0o600)
    before = person.possessions()
    lend = ["~/.aws", f"{person.home}/.netrc"]
    assert list(listed(person, lend=lend, environment=path())) == [".aws/credentials", ".netrc"]
    assert (
        person.inside("cat ~/.aws/credentials; echo x > ~/.aws/credentials || echo refused", lend=lend)
        == "lent\nrefused\n"
    )
    assert person.possessions() == before


def test_ssh_is_lent_with_its_agent(person: Person) -> None:
    person.begin().furnish()
    place = person.folder / "agent"
    place.mkdir()
    person.own(place)
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind(str(place / "sock"))
        agent.listen()
        os.chmod(place / "sock", 0o777)
        person.own(place / "sock")
        environment = {"SSH_AUTH_SOCK": str(place / "sock"), **path()}
        script = """
        import json, os, socket
        ours = socket.socket(socket.AF_UNIX)
        ours.connect(os.environ["SSH_AUTH_SOCK"])
        print(json.dumps(open(os.path.expanduser("~/.ssh/id")).read()))
        """
        assert person.python_inside(script, lend=["ssh"], environment=environment) == ".ssh/id of the person\n"
    assert listed(person, lend=["ssh"], environment=environment) == [".ssh/id"]


def test_logins_in_addresses_of_remotes_are_not_lent(person: Person) -> None:
    person.begin()
    for key, value in (
        ("remote.origin.url", "https://user:secret@host.example/a.git"),
        ("remote.origin.pushurl", "https://secret@host.example/a.git"),
        ("branch.main.remote", "https://user:secret@host.example/b.git"),
        ("branch.main.merge", "refs/heads/main"),
        ("remote.two.url", "git@host.example:a.git"),
        ("remote.three.url", "ssh://git@host.example/a.git"),
        ("http.extraHeader", "Authorization: secret"),
        ("credential.helper", "!echo secret"),
        ("url.https://secret@host.example/.insteadOf", "https://host.example/"),
    ):
        person.git("config", key, value)
    said = person.inside("git config --list --local; grep -rs secret .git; git remote -v")
    assert "secret" not in said
    for kept in (
        "https://host.example/a.git",
        "https://host.example/b.git",
        "git@host.example:a.git",
        "ssh://git@host",
    ):
        assert kept in said


def test_the_caches_of_tools_can_be_written_and_the_person_s_stay_as_they_are(person: Person) -> None:
    person.begin()
    caches = [".cache", ".npm", ".cargo/registry", "go/pkg", ".m2/repository"]
    for cache in caches:
        person.write(person.home / cache / "x", "person\n")
    before = person.possessions()
    names = " ".join(f"~/{cache}" for cache in caches)
    script = f"for one in {names}; do cat $one/x && echo agent > $one/x && mkdir $one/new; done"
    assert person.inside(script) == "person\n" * len(caches)
    assert person.possessions() == before


@pytest.mark.parametrize("home", [None, "/", "/nowhere", "relative"])
def test_a_home_that_is_not_one_does_no_harm(person: Person, home: str | None) -> None:
    person.begin().furnish()
    del person.environment["HOME"]
    before = person.possessions()
    given = {} if home is None else {"HOME": home}
    said = person.inside("pwd; git status --short; touch new", environment={**given, **path()})
    assert said == f"{person.project}\n"
    assert person.possessions() == before
