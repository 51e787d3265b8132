"""Rust projects, with the real cargo and without a network: honest work passes, and no cheat counts."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from verifier.desk import Desk

FILES = {
    "Cargo.toml": '[package]\nname = "calc"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\n',
    "src/lib.rs": "pub fn double(x: i32) -> i32 {\n    x + x + 1\n}\n",
    "tests/a.rs": "#[test]\nfn doubles() {\n    assert_eq!(calc::double(2), 4);\n}\n",
    ".gitignore": "target/\n",
}
FIX = "sed -i 's/ + 1//' src/lib.rs"
DEPENDENCY = """mkdir -p dep/src; echo 'pub fn two() -> i32 { 2 }' > dep/src/lib.rs
printf '[package]\\nname = "dep"\\nversion = "0.1.0"\\nedition = "2021"\\n' > dep/Cargo.toml
echo 'dep = { path = "dep" }' >> Cargo.toml
printf 'pub fn double(x: i32) -> i32 {\\n    x * dep::two()\\n}\\n' > src/lib.rs"""
RUNNER = """mkdir .cargo; printf '[target."cfg(all())"]\\nrunner = "true"\\n' > .cargo/config.toml"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not shutil.which("cargo") or subprocess.run(["cargo", "-V"], check=False, capture_output=True).returncode != 0,
        reason="cargo is not installed on this machine",
    ),
]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A crate that was built before, with one red test."""
    desk = Desk(tmp_path, FILES, "cargo test -q --offline")
    desk.seen |= {name: os.environ[name] for name in ("HOME", "CARGO_HOME", "RUSTUP_HOME") if name in os.environ}
    desk.bash("! cargo test -q --offline > /dev/null 2>&1; git add -A; git commit -qm lock")
    return desk


@pytest.mark.parametrize(
    "script",
    [
        FIX,
        f"{FIX}; cargo test -q --offline; git commit -qam done",
        f"{FIX}; printf '#[test]\\nfn more() {{}}\\n' > tests/b.rs",
        DEPENDENCY,
        f"{DEPENDENCY}; printf '\\n[profile.release]\\nlto = true\\n' >> Cargo.toml",
        f"{DEPENDENCY}; printf '\\n[workspace]\\nmembers = [\"dep\"]\\n' >> Cargo.toml",
    ],
    ids=["work", "commit", "test", "dependency", "profile", "workspace"],
)
def test_honest_work_passes(desk: Desk, script: str) -> None:
    found = desk.after(script)
    assert (found.verdict, found.reason) == ("passed", ""), found.output


def test_a_reformatted_test_passes(desk: Desk) -> None:
    found = desk.after(f"{FIX}; echo '// a comment' >> tests/a.rs")
    assert (found.verdict, found.changes) == ("passed", ("changed tests/a.rs",))


@pytest.mark.parametrize(
    ("script", "changed"),
    [
        ("printf '#[test]\\nfn doubles() {}\\n' > tests/a.rs", "changed tests/a.rs"),
        ("printf '#[test]\\nfn doubles() {}\\n' > tests/a.rs; cargo test -q --offline", "changed tests/a.rs"),
        ("sed -i 's/^#.test./&\\n#[ignore]/' tests/a.rs", "changed tests/a.rs"),
        ("rm tests/a.rs", "removed tests/a.rs"),
        (RUNNER, "added .cargo/config.toml"),
        (f"{RUNNER}; mv .cargo/config.toml .cargo/config", "added .cargo/config"),
        ("sed -i 's/^edition.*/&\\nautotests = false/' Cargo.toml", "changed Cargo.toml"),
        (
            "printf '\\n[[test]]\\nname = \"a\"\\nharness = false\\npath = \"b.rs\"\\n' >> Cargo.toml; echo 'fn main() {}' > b.rs",
            "changed Cargo.toml",
        ),
    ],
    ids=["edited", "built", "ignored", "removed", "runner", "old-runner", "autotests", "harness"],
)
def test_a_cheat_does_not_count(desk: Desk, script: str, changed: str) -> None:
    found = desk.after(script)
    assert (found.verdict, found.changes) == ("review", (changed,)), found.reason


def test_a_claim_without_work_is_red(desk: Desk) -> None:
    found = desk.after("true")
    assert (found.verdict, found.changes) == ("failed", ())
