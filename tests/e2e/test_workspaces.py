"""The real programs in a workspace: what they find there, what comes home, and what of the person's stays as it was."""

import base64
import contextlib
import json
import os
import re
import shutil
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from e2e.model import (
    MISSING,
    Answer,
    Error,
    Model,
    Request,
    Script,
    Text,
    Tool,
    claude_environment,
    program,
    results,
    turns,
)
from e2e.responses import MISSING as NO_CODEX
from e2e.responses import Question, Responses, codex_environment

pytestmark = pytest.mark.e2e
needs_claude = pytest.mark.skipif(program("claude") is None, reason=MISSING)
needs_codex = pytest.mark.skipif(program("codex") is None, reason=NO_CODEX)

ROOT = Path(__file__).parents[2]
ORDINARY = 65534
SILENT = "lint: {ignore: {no-transition: the model is a script, dead-end: the model is a script}}\n"
TESTED = "if (require('tiny')() + require('./lib.js') !== 'tiny right') process.exit(1); console.log('all is green')"
PROJECT = {
    ".gitignore": "node_modules\n",
    "package.json": '{"name": "p", "version": "1.0.0", "scripts": {"test": "node test.js"}}',
    "lib.js": "module.exports = 'wrong'\n",
    "test.js": TESTED,
    "node_modules/tiny/package.json": '{"name": "tiny", "version": "1.0.0"}',
    "node_modules/tiny/index.js": "module.exports = () => 'tiny '\n",
}
RIGHT = "module.exports = 'right'\n"
PATCH = "*** Begin Patch\n*** Update File: lib.js\n@@\n-module.exports = 'wrong'\n+module.exports = 'right'\n*** End Patch\n"

State = dict[str, tuple[int, bytes]]


def standing(folder: Path) -> State:
    """All files and folders with their modes and contents; what Raymond may write in a repository is left out.

    So is what Codex writes when the person, or Raymond for them, asks it for its version.
    """
    found: State = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name.startswith((".git/objects/", ".git/refs/raymond", ".raymond", ".codex/tmp")):
            continue
        status = path.lstat()
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[name] = status.st_mode, content
    return found


class Yard:
    """A person with a home, a project whose packages are installed, and Raymond: as root, or as an ordinary user."""

    def __init__(self, path: Path, user: int, server: Model, environment: Mapping[str, str]) -> None:
        self.path, self.server = path, server
        self.user, self.project, self.state = path / "home", path / "project", path / "state"
        self._uid = user
        self._drop = (
            ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"] if _may_drop(user) else []
        )
        self.environment = {**environment, "RAYMOND_HOME": str(self.state), "HOME": str(self.user)}
        # npm would ask whether there is a newer one.
        self.environment |= {"NPM_CONFIG_UPDATE_NOTIFIER": "false"}
        self.environment |= {"PATH": f"{os.path.dirname(program('claude') or program('codex') or '')}:/usr/bin:/bin"}
        self._python = self._interpreter()
        self.user.mkdir(exist_ok=True)
        self.write(self.project, PROJECT)
        for command in ("init -q", "add .", "-c user.name=a -c user.email=a@b commit -qm base"):
            subprocess.run(["git", *command.split()], cwd=self.project, check=True)

    def _interpreter(self) -> list[str]:
        """What this user can run Raymond with: the tests' own Python may lie in a home that is closed to others."""
        folders = [str(ROOT / "src"), *(one for one in sys.path if one.endswith("site-packages"))]
        self.environment["PYTHONPATH"] = ":".join(folders)
        for one in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
            with_it = [*self._drop, "/usr/bin/env", one, "-c", "import raymond.__main__"]
            if shutil.which(one) and not subprocess.run(with_it, env=self.environment, capture_output=True).returncode:
                return [one, "-m", "raymond"]
        pytest.skip(f"no Python that user {self._uid} can run Raymond with")

    def write(self, folder: Path, files: Mapping[str, str]) -> None:
        """Write files of the person's."""
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")

    def own(self, *argv: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run a command as the person."""
        for folder, _, names in os.walk(self.path) if self._drop else ():
            for name in (folder, *(os.path.join(folder, one) for one in names)):
                os.chown(name, self._uid, self._uid, follow_symlinks=False)
        given, env = [*self._drop, *argv], self.environment | environment
        return subprocess.run(
            given, cwd=self.project, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )

    def raymond(self, *args: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return self.own(*self._python, *args, **environment)

    def run(self, files: Mapping[str, str], *args: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run a workflow to its end, isolated if nothing else is said."""
        self.write(self.path / "flow", {"workflow.yaml": SILENT, **files})
        way = () if "--workspace" in args else ("--workspace", "isolated")
        return self.raymond("run", str(self.path / "flow"), "--id", "r", *way, *args, **environment)

    def saw(self, prompt: str) -> list[str]:
        """What the model saw of the conversation when it was first asked `prompt`."""
        request = next(one for one in self.server.requests if one.prompt == prompt)
        said = request.turns if isinstance(request, Question) else turns(request)
        return [text for role, text in said if role == "user"]

    def told(self) -> list[str]:
        """What came of all tools."""
        last = [one.results if isinstance(one, Question) else results(one) for one in self.server.requests]
        return [one for each in last for one in each]


def _may_drop(user: int) -> bool:
    return os.geteuid() == 0 and user != 0


def _users() -> list[int]:
    """Root and an ordinary user, where the tests may be both."""
    return [0, ORDINARY] if os.geteuid() == 0 and shutil.which("setpriv") else [os.geteuid()]


@pytest.fixture(params=_users(), ids=lambda user: "root" if user == 0 else "ordinary")
def user(request: pytest.FixtureRequest) -> int:
    """Who runs Raymond."""
    return int(request.param)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user can reach, and that no workspace hides."""
    path = Path(tempfile.mkdtemp(prefix="raymond-test-", dir="/var/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


Make = Callable[[Script], Yard]


@pytest.fixture
def claude(place: Path, user: int) -> Iterator[Make]:
    """Makes the one yard of a test with Claude Code; nothing may have been asked of another host than the model's."""
    servers: list[Model] = []

    def make(script: Script) -> Yard:
        server = Model(script)
        server.start()
        servers.append(server)
        own = claude_environment(place / "home", server)
        for name in ("CLAUDE_CONFIG_DIR", "IS_SANDBOX"):
            del own[name]
        return Yard(place, user, server, own)

    yield make
    for one in servers:
        one.close()
        assert one.others == []


@pytest.fixture
def codex(place: Path, user: int) -> Iterator[Make]:
    """The same with Codex."""
    servers: list[Responses] = []

    def make(script: Script) -> Yard:
        server = Responses(script)
        server.start()
        servers.append(server)
        own = codex_environment(place / "home", server)
        (place / "home" / "codex").rename(place / "home" / ".codex")
        del own["CODEX_HOME"]
        return Yard(place, user, server, own)

    yield make
    for one in servers:
        one.close()
        assert one.others == []


FLOW = {f"{state}.md": f"prompt {state}." for state in ("START", "MORE", "SUB", "END")}
LOOK = "npm test; ls -A ~; ls .. ; touch ~/.bashrc; echo x > ../outside; env"


def conversation(first: list[Answer], second: list[Answer]) -> dict[str, list[Answer]]:
    """Two turns of work, one of which continues the other, then one that branches, and the end."""
    return {
        "prompt START.": [*first, Text("<goto>MORE</goto>")],
        "prompt MORE.": [*second, Text('<call return="END">SUB</call>')],
        "prompt SUB.": [Text("<result>sub</result>")],
        "prompt END.": [Text("<result>done</result>")],
        "What was it?": [Text("that")],
    }


# --- Claude Code


def edited(project: Path) -> list[Answer]:
    path = str(project / "lib.js")
    edit = {"file_path": path, "old_string": "wrong", "new_string": "right"}
    return [Tool("Read", {"file_path": path}), Tool("Edit", edit), Tool("Bash", {"command": LOOK})]


@needs_claude
def test_claude_works_in_a_workspace_and_only_its_conversations_and_the_work_come_home(
    claude: Make, place: Path
) -> None:
    wrote = Tool(
        "Bash",
        {"command": "echo by bash > made.txt && git -c user.name=a -c user.email=a@b commit -qam mine; git stash list"},
    )
    yard = claude(conversation(edited(place / "project"), [wrote]))
    skill = "---\nname: weave\ndescription: MARK-SKILL weaves\n---\nweave\n"
    yard.write(yard.user / ".claude", {"CLAUDE.md": "MARK-MINE", "history.jsonl": "what I said", "todos/x": "y"})
    yard.write(yard.path / "elsewhere", {"weave/SKILL.md": skill})
    (yard.user / ".claude" / "skills").symlink_to(yard.path / "elsewhere")
    yard.write(
        yard.user, {".ssh/id": "key", ".bashrc": "mine", ".claude.json": '{"mcpServers": {}, "secret": "MARK-STATE"}'}
    )
    home, project = standing(yard.user), standing(yard.project)
    done = yard.run(FLOW, "--backend", "claude", "--dangerously-skip-permissions", GH_TOKEN="gh-secret-1234567")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr

    first = json.dumps(yard.server.requests[0].body)
    assert "MARK-MINE" in first
    assert "MARK-SKILL" in first
    told = "\n".join(yard.told())
    assert "all is green" in told
    assert ".ssh" not in told
    assert "gh-secret" not in told
    assert yard.saw("prompt MORE.") == ["prompt START.", "prompt MORE."]
    assert yard.saw("prompt SUB.") == ["prompt START.", "prompt MORE.", "prompt SUB."]
    assert yard.saw("prompt END.") == ["prompt START.", "prompt MORE.", "prompt END."]

    assert standing(yard.project) == project
    after = standing(yard.user)
    folder = f".claude/projects/{re.sub('[^A-Za-z0-9]', '-', str(yard.project))}"
    new = [name for name in after if name not in home]
    kept = [name for name in new if name.endswith(".jsonl")]
    assert {name: after[name] for name in home} == home
    assert sorted(new) == sorted([".claude/projects", folder, *kept])
    assert len(kept) == 4
    assert all(name.startswith(f"{folder}/") for name in kept)

    session = next(request.session for request in yard.server.requests if request.prompt == "prompt END.")
    again = yard.own("claude", "-p", "--resume", session, "What was it?")
    assert again.returncode == 0, again.stderr
    assert yard.saw("What was it?") == ["prompt START.", "prompt MORE.", "prompt END.", "What was it?"]

    applied = yard.raymond("apply", "r")
    assert applied.returncode == 0, applied.stderr
    changed = standing(yard.project)
    assert {name for name in changed if changed[name] != project.get(name)} == {"lib.js", "made.txt"}
    assert (yard.project / "lib.js").read_text() == RIGHT


@needs_claude
def test_claude_works_in_a_copy_with_the_persons_own_folder(claude: Make) -> None:
    yard = claude({"prompt START.": [Tool("Bash", {"command": "echo by bash > made.txt"}), Text("<result>1</result>")]})
    yard.write(yard.user, {".claude/CLAUDE.md": "MARK-MINE"})
    done = yard.run({"START.md": "prompt START."}, "--backend", "claude", "--workspace", "copy", "--allow-tool", "Bash")
    assert done.returncode == 0, done.stderr
    assert "MARK-MINE" in json.dumps(yard.server.requests[0].body)
    assert not (yard.project / "made.txt").exists()
    assert yard.raymond("apply", "r").returncode == 0
    assert (yard.project / "made.txt").read_text() == "by bash\n"


@needs_claude
def test_a_conversation_goes_from_the_persons_checkout_into_a_workspace_and_back(claude: Make) -> None:
    replies = {"START": "<goto>INSIDE</goto>", "INSIDE": "<goto>BACK</goto>", "BACK": "<result>1</result>"}
    yard = claude({f"prompt {state}.": [Text(reply)] for state, reply in replies.items()})
    files = {f"{state}.md": f"prompt {state}." for state in replies}
    files["INSIDE.md"] = "---\nworkspace: isolated\n---\nprompt INSIDE."
    done = yard.run(files, "--backend", "claude", "--workspace", "here")
    assert done.returncode == 0, done.stderr
    assert yard.saw("prompt INSIDE.") == ["prompt START.", "prompt INSIDE."]
    assert yard.saw("prompt BACK.") == ["prompt START.", "prompt INSIDE.", "prompt BACK."]


# --- Codex


def shell(command: str) -> Tool:
    return Tool("exec_command", {"cmd": command})


@needs_codex
def test_codex_works_in_a_workspace_and_only_its_conversations_and_the_work_come_home(codex: Make) -> None:
    patch = Tool("apply_patch", {"input": PATCH})
    yard = codex(
        conversation([patch, shell(LOOK)], [shell("echo by bash > made.txt; git tag -d mine; git branch other")])
    )
    skill = "---\nname: weave\ndescription: MARK-SKILL weaves\n---\nweave\n"
    files = {"AGENTS.md": "MARK-MINE", "skills/weave/SKILL.md": skill, "history.jsonl": "what I said"}
    yard.write(yard.user / ".codex", files)
    yard.write(yard.user, {".ssh/id": "key", ".bashrc": "mine"})
    home, project = standing(yard.user), standing(yard.project)
    done = yard.run(FLOW, "--backend", "codex", "--model", "gpt-5.5", GH_TOKEN="gh-secret-1234567")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr

    first = json.dumps(yard.server.requests[0].body)
    assert "MARK-MINE" in first
    assert "MARK-SKILL" in first
    told = "\n".join(yard.told())
    assert "all is green" in told
    assert ".ssh" not in told
    assert "gh-secret" not in told
    assert yard.saw("prompt MORE.")[-2:] == ["prompt START.", "prompt MORE."]
    assert yard.saw("prompt SUB.")[-3:] == ["prompt START.", "prompt MORE.", "prompt SUB."]
    assert yard.saw("prompt END.")[-3:] == ["prompt START.", "prompt MORE.", "prompt END."]

    assert standing(yard.project) == project
    after = standing(yard.user)
    new = [name for name in after if name not in home and not stat.S_ISDIR(after[name][0])]
    assert {name: after[name] for name in home} == home
    assert len(new) == 4
    assert all(name.startswith(".codex/sessions/") for name in new)

    last = next(one for one in yard.server.requests if one.prompt == "prompt END.")
    assert any(last.session in name for name in new)
    quiet = ("analytics.enabled", "features.plugins", "features.apps")
    argv = ["codex", "exec", "--skip-git-repo-check", *(part for one in quiet for part in ("-c", f"{one}=false"))]
    again = yard.own(*argv, "resume", last.session, "What was it?")
    assert again.returncode == 0, again.stderr
    assert yard.saw("What was it?")[-4:] == ["prompt START.", "prompt MORE.", "prompt END.", "What was it?"]

    applied = yard.raymond("apply", "r")
    assert applied.returncode == 0, applied.stderr
    changed = standing(yard.project)
    assert {name for name in changed if changed[name] != project.get(name)} == {"lib.js", "made.txt"}
    assert (yard.project / "lib.js").read_text() == RIGHT


@needs_codex
def test_a_state_that_may_only_read_changes_nothing_and_can_still_look(codex: Make) -> None:
    patch = Tool("apply_patch", {"input": PATCH})
    tools: list[Answer] = [shell("cat lib.js; echo x > made.txt"), patch, Text("<result>1</result>")]
    yard = codex({"prompt START.": tools})
    files = {"START.md": "---\npermission_mode: plan\n---\nprompt START."}
    done = yard.run(files, "--backend", "codex", "--model", "gpt-5.5")
    assert done.returncode == 0, done.stderr
    assert "module.exports = 'wrong'" in "\n".join(yard.told())
    assert yard.raymond("apply", "r").stderr == "r has changed nothing\n"


@needs_codex
def test_codex_works_in_a_copy(codex: Make) -> None:
    yard = codex({"prompt START.": [shell("echo by bash > made.txt"), Text("<result>1</result>")]})
    done = yard.run({"START.md": "prompt START."}, "--backend", "codex", "--workspace", "copy")
    assert done.returncode == 0, done.stderr
    assert not (yard.project / "made.txt").exists()
    assert yard.raymond("apply", "r").returncode == 0
    assert (yard.project / "made.txt").read_text() == "by bash\n", yard.told()


@needs_codex
def test_a_conversation_of_codex_goes_into_a_workspace_and_back(codex: Make) -> None:
    replies = {
        "START": "<goto>NEXT</goto>",
        "NEXT": "<goto>INSIDE</goto>",
        "INSIDE": "<goto>BACK</goto>",
        "BACK": "<result>1</result>",
    }
    yard = codex({f"prompt {state}.": [Text(reply)] for state, reply in replies.items()})
    files = {f"{state}.md": f"prompt {state}." for state in replies}
    files["INSIDE.md"] = "---\nworkspace: isolated\n---\nprompt INSIDE."
    done = yard.run(files, "--backend", "codex", "--workspace", "here")
    assert done.returncode == 0, done.stderr
    assert yard.saw("prompt INSIDE.") == ["prompt START.", "prompt NEXT.", "prompt INSIDE."]
    assert yard.saw("prompt BACK.") == ["prompt START.", "prompt NEXT.", "prompt INSIDE.", "prompt BACK."]


# --- logins


class Tokens:
    """The server that renews a login, on loopback: each token to renew one with counts once, as in life."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.used: set[str] = set()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._http.server_port}/oauth/token"

    def answer(self, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.asked.append(asked)
        old = str(asked["refresh_token"])
        if old in self.used:
            return 401, {"error": {"code": "refresh_token_reused", "message": "used"}}
        self.used.add(old)
        new = len(self.asked)
        return 200, {
            "access_token": token(f"new-{new}", 1 << 33),
            "refresh_token": f"refresh-{new}",
            "expires_in": 3600,
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        tokens = self

        class Exchange(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                status, said = tokens.answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                encoded = json.dumps(said).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(encoded)))
                self.end_headers()
                self.wfile.write(encoded)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Exchange

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


def token(name: str, expires: int) -> str:
    """A token as Codex reads it: it looks at when it expires, and at whose it is."""
    about = {"chatgpt_account_id": "account", "chatgpt_plan_type": "plus"}
    content = {"exp": expires, "sub": name, "email": "a@b", "https://api.openai.com/auth": about}
    parts = (json.dumps(one).encode() for one in ({"alg": "none", "typ": "JWT"}, content, {}))
    return ".".join(base64.urlsafe_b64encode(one).decode().rstrip("=") for one in parts)


@pytest.fixture
def tokens() -> Iterator[Tokens]:
    """A server that renews logins."""
    server = Tokens()
    yield server
    server.close()


LENT = {"workflow.yaml": f"{SILENT}lend: [CODEX_REFRESH_TOKEN_URL_OVERRIDE]\n"}


def log_in(yard: Yard, tokens: Tokens, refresh: str = "refresh-0") -> Path:
    """Let Codex pay by a login that has expired; it then asks its maker's own hosts too, which refuse here."""
    settings = yard.user / ".codex" / "config.toml"
    settings.write_text(settings.read_text().replace('env_key = "OPENAI_API_KEY"', "requires_openai_auth = true"))
    known = {
        "id_token": token("id", 1),
        "access_token": token("old", 1),
        "refresh_token": refresh,
        "account_id": "account",
    }
    login = {"auth_mode": "chatgpt", "tokens": known, "last_refresh": "2026-01-01T00:00:00Z"}
    yard.write(yard.user, {".codex/auth.json": json.dumps(login)})
    yard.environment["CODEX_REFRESH_TOKEN_URL_OVERRIDE"] = tokens.url
    del yard.environment["OPENAI_API_KEY"]
    return yard.user / ".codex" / "auth.json"


@needs_codex
def test_a_login_of_codex_that_is_renewed_in_a_workspace_is_renewed_for_the_person(codex: Make, tokens: Tokens) -> None:
    yard = codex({"prompt START.": [Text("<goto>END</goto>")], "prompt END.": [Text("<result>1</result>")]})
    path = log_in(yard, tokens)
    before = path.stat()
    done = yard.run({**LENT, "START.md": "prompt START.", "END.md": "prompt END."}, "--backend", "codex")
    assert done.returncode == 0, done.stderr
    note = f"the agent's program can read and change the login in {path}; CODEX_API_KEY avoids that"
    assert done.stderr.count(note) == 1
    assert [one["refresh_token"] for one in tokens.asked] == ["refresh-0"]
    assert json.loads(path.read_text())["tokens"]["refresh_token"] == "refresh-1"
    assert (path.stat().st_ino, stat.S_IMODE(path.stat().st_mode)) == (before.st_ino, stat.S_IMODE(before.st_mode))
    assert not list(yard.state.rglob("auth.json*")), "a copy is left"
    yard.server.others.clear()


@needs_codex
def test_a_turn_whose_login_another_one_has_just_renewed_is_tried_again(codex: Make, tokens: Tokens) -> None:
    def model(request: Request) -> Answer:
        is_new = request.headers["authorization"] == f"Bearer {token('theirs', 1 << 33)}"
        return Text("<result>1</result>") if is_new else Error(401)

    yard = codex(model)
    path = log_in(yard, tokens)
    theirs = json.loads(path.read_text()) | {"last_refresh": "2026-11-18T00:00:00Z"}
    theirs["tokens"] |= {"access_token": token("theirs", 1 << 33), "refresh_token": "theirs"}

    def answer(asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Another program was faster by a moment: what it got is in the file only when this turn has failed."""
        tokens.asked.append(asked)
        if len(tokens.asked) == 1:
            threading.Timer(4, lambda: path.write_text(json.dumps(theirs))).start()
        return 401, {"error": {"code": "refresh_token_reused", "message": "used"}}

    tokens.answer = answer  # type: ignore[method-assign]
    done = yard.run({**LENT, "START.md": "prompt START."}, "--backend", "codex")
    assert done.returncode == 0, done.stderr
    assert "refresh token was already used" in done.stderr
    yard.server.others.clear()


class Maker:
    """The hosts of Claude Code's maker behind a proxy with a certificate of its own: they renew logins."""

    def __init__(self, folder: Path) -> None:
        self.renewed: list[str] = []
        self._folder = folder
        self.certificate = folder / "ca.pem"
        own = (
            "-keyout",
            "ca.key",
            "-out",
            "ca.pem",
            "-subj",
            "/CN=test",
            "-addext",
            "basicConstraints=critical,CA:TRUE",
        )
        self._openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *own)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._listen, daemon=True).start()

    def _openssl(self, *args: str) -> None:
        subprocess.run(["openssl", *args], cwd=self._folder, check=True, capture_output=True)

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self._listener.accept()[0],), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError):
            file = plain.makefile("rb")
            host = file.readline().split()[1].decode().partition(":")[0]
            while file.readline().strip():
                pass
            plain.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            with self._context(host).wrap_socket(plain, server_side=True) as secured:
                self._answer(secured)

    def _context(self, host: str) -> ssl.SSLContext:
        (self._folder / f"{host}.ext").write_text(f"subjectAltName=DNS:{host}\n")
        self._openssl(
            "req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{host}.key", "-out", f"{host}.csr", "-subj", "/CN=x"
        )
        by = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", f"{host}.ext", "-days", "2")
        self._openssl("x509", "-req", "-in", f"{host}.csr", "-out", f"{host}.pem", *by)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._folder / f"{host}.pem", self._folder / f"{host}.key")
        return context

    def _answer(self, secured: ssl.SSLSocket) -> None:
        file = secured.makefile("rb")
        while line := file.readline():
            length = 0
            while header := file.readline().strip():
                length = int(header.split(b":")[1]) if header.lower().startswith(b"content-length:") else length
            body = file.read(length)
            status, said = 404, b"{}"
            if b"/oauth/token" in line:
                self.renewed.append(json.loads(body)["refresh_token"])
                new = {"access_token": "sk-ant-oat01-new", "refresh_token": "sk-ant-ort01-new", "expires_in": 28800}
                status, said = 200, json.dumps({**new, "token_type": "Bearer", "scope": "user:inference"}).encode()
            head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {len(said)}\r\n\r\n"
            secured.sendall(head.encode() + said)

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def maker(place: Path) -> Iterator[Maker]:
    """Hosts that renew logins."""
    if not shutil.which("openssl"):
        pytest.skip("no openssl to make certificates with")
    folder = place / "certificates"
    folder.mkdir()
    made = Maker(folder)
    yield made
    made.close()


EXPIRED = {
    "claudeAiOauth": {
        "accessToken": "sk-ant-oat01-old",
        "refreshToken": "sk-ant-ort01-old",
        "expiresAt": 1_000_000_000_000,
        "scopes": ["user:inference"],
        "subscriptionType": "max",
    }
}


def logged_in(yard: Yard, maker: Maker, folder: Path) -> Path:
    """Let Claude Code pay by a login that has expired, which is in `folder`."""
    del yard.environment["ANTHROPIC_API_KEY"]
    yard.environment |= {"HTTPS_PROXY": maker.url, "NODE_EXTRA_CA_CERTS": str(maker.certificate)}
    yard.state.mkdir(mode=0o700)
    yard.write(folder, {".credentials.json": json.dumps(EXPIRED)})
    return folder / ".credentials.json"


DONE: dict[str, list[Answer]] = {"prompt START.": [Text("<result>1</result>")]}


@needs_claude
def test_a_login_of_raymonds_own_is_renewed_in_a_workspace_for_all_runs(claude: Make, maker: Maker) -> None:
    yard = claude(
        {"prompt START.": [Tool("Bash", {"command": "ls -A $RAYMOND_HOME ~/.claude"}), *DONE["prompt START."]]}
    )
    yard.write(yard.user, {".claude/settings.json": "{}"})
    path = logged_in(yard, maker, yard.state / "logins" / "claude")
    home = standing(yard.user)
    done = yard.run({"START.md": "prompt START."}, "--backend", "claude", "--dangerously-skip-permissions")
    assert done.returncode == 0, done.stderr
    note = f"the agent's program can read the login in {path.parent}; `claude setup-token` avoids that"
    assert done.stderr.count(note) == 1
    assert maker.renewed == ["sk-ant-ort01-old"]
    assert json.loads(path.read_text())["claudeAiOauth"]["refreshToken"] == "sk-ant-ort01-new"
    assert yard.server.requests[-1].headers["authorization"] == "Bearer sk-ant-oat01-new"
    assert os.listdir(yard.state / "logins") == ["claude"], "a lock is left"
    assert "logins" in yard.told()[0]
    assert "sources" not in yard.told()[0]
    assert {name: now for name, now in standing(yard.user).items() if name in home} == home


@needs_claude
def test_the_persons_own_login_enters_no_workspace(claude: Make, maker: Maker) -> None:
    """It is renewed in place, in the folder of the settings: an agent that could do that could write hooks there."""
    yard = claude(DONE)
    path = logged_in(yard, maker, yard.user / ".claude")
    done = yard.run({"START.md": "prompt START."}, "--backend", "claude")
    assert done.returncode == 5, done.stderr
    assert f"the login in {path} cannot be lent to a workspace" in done.stderr
    assert "run `claude setup-token` and set CLAUDE_CODE_OAUTH_TOKEN" in done.stderr
    command = f"(umask 077; CLAUDE_SECURESTORAGE_CONFIG_DIR={yard.state}/logins/claude claude auth login)"
    assert command in done.stderr
    assert yard.server.requests == []
    assert yard.raymond("list").stdout == "", "a run was started"
    assert command in yard.raymond("doctor").stdout


@needs_claude
def test_with_a_token_no_login_enters_a_workspace(claude: Make, maker: Maker) -> None:
    look = "ls -A $RAYMOND_HOME; cat ~/.claude/.credentials.json"
    yard = claude({"prompt START.": [Tool("Bash", {"command": look}), *DONE["prompt START."]]})
    logged_in(yard, maker, yard.state / "logins" / "claude")
    path = logged_in_too(yard)
    given = {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-mine"}
    args = ("--backend", "claude", "--dangerously-skip-permissions")
    done = yard.run({"START.md": "prompt START."}, *args, **given)
    assert done.returncode == 0, done.stderr
    assert "can read" not in done.stderr
    assert yard.server.requests[0].headers["authorization"] == "Bearer sk-ant-oat01-mine"
    assert "logins" not in yard.told()[0]
    assert "sk-ant" not in yard.told()[0]
    assert maker.renewed == []
    assert json.loads(path.read_text()) == EXPIRED


def logged_in_too(yard: Yard) -> Path:
    """The person has a login in their own folder as well."""
    yard.write(yard.user, {".claude/.credentials.json": json.dumps(EXPIRED)})
    return yard.user / ".claude" / ".credentials.json"
