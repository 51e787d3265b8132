"""Files that Claude Code itself keeps agents from editing, whichever tools are allowed."""

import os

_FOLDERS = frozenset({".git", ".vscode", ".idea", ".claude", ".husky", ".cargo", ".devcontainer", ".yarn", ".mvn"})
_FILES = frozenset(
    (
        *(".gitconfig", ".gitmodules", ".ripgreprc", ".mcp.json", ".claude.json", ".envrc"),
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_aliases", ".bash_logout", ".profile"),
        *(".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout"),
        *(".npmrc", ".yarnrc", ".yarnrc.yml", ".pnp.cjs", ".pnp.loader.mjs", ".pnpmfile.cjs"),
        *("bunfig.toml", ".bunfig.toml", ".bazelrc", ".bazelversion", ".bazeliskrc"),
        *(".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml", "lefthook.yaml", ".lefthook.yaml"),
        *("gradle-wrapper.properties", "maven-wrapper.properties", ".devcontainer.json", "pyrightconfig.json"),
    )
)


def guards(path: str) -> bool:
    """Whether the program refuses to edit `path` even where edits are allowed."""
    folder, name = os.path.split(path)
    return name in _FILES or not _FOLDERS.isdisjoint((*folder.split("/"), name))
