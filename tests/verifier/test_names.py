"""Names that runners and linters load."""

import pytest

from raymond.verifier.decides import loaded

ANYWHERE = (
    *("ruff.toml", ".ruff.toml", ".eslintrc", ".eslintrc.json", "rustfmt.toml", ".rustfmt.toml", ".prettierrc"),
    *(".prettierrc.json", ".prettierignore", ".stylelintrc.yml", ".shellcheckrc", ".yamllint", ".yamllint.yml"),
    *(".rubocop.yml", ".clang-tidy", ".clang-format", ".isort.cfg"),
)
AT_A_ROOT = (
    *("phpstan.neon", "phpstan.neon.dist", ".importlinter", ".bandit", ".proverc", "settings.gradle"),
    *("settings.gradle.kts", "CTestCustom.cmake", "CMakePresets.json", "behave.ini", "pnpm-workspace.yaml"),
    *("lerna.json", "nx.json", "turbo.json", "pytest.ini", "tox.ini"),
)


@pytest.mark.parametrize("name", ANYWHERE)
def test_the_nearest_settings_of_a_linter_count_in_every_folder(name: str) -> None:
    assert loaded(name, "src/deep", is_root=False) == "loaded"


@pytest.mark.parametrize("name", AT_A_ROOT)
def test_settings_of_runners_count_where_they_start(name: str) -> None:
    assert loaded(name, "", is_root=True) == "loaded"
    assert loaded(name, "src", is_root=False) is None


@pytest.mark.parametrize("name", ["pytest.ini", ".pytest.toml", "tox.ini"])
def test_settings_in_a_folder_of_tests_count(name: str) -> None:
    assert loaded(name, "tests/unit", is_root=False, of_tests=True) == "loaded"
    assert loaded("Makefile", "tests/unit", is_root=False, of_tests=True) is None


def test_the_wrapper_of_gradle_is_known_by_its_folder() -> None:
    assert loaded("gradle-wrapper.properties", "gradle/wrapper", is_root=False) == "loaded"
    assert loaded("gradle-wrapper.properties", "docs", is_root=False) is None
