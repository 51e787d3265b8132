"""`.raymond/config.toml`: what a project sets for all of its runs."""

import msgspec
from msgspec import Struct

from raymond.errors import UsageError
from raymond.project import Project

DURABILITY = ("normal", "strict")


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings; a default means: not set."""

    durability: str = "normal"
    """`strict` syncs every decision before anything follows from it."""


def load(project: Project) -> Config:
    """The project's settings; a key that does not exist is an error."""
    path = project.path("config.toml")
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return Config()
    import tomllib

    try:
        values = tomllib.loads(data.decode())
        unknown = next((key for key in values if key not in Config.__struct_fields__), "")
        if unknown:
            raise UsageError(f"{path}: there is no key `{unknown}`", hint="there is: durability")
        config = msgspec.convert(values, Config)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise UsageError(f"{path}: {error}", hint='durability = "strict"') from None
    if config.durability not in DURABILITY:
        raise UsageError(f"{path}: durability is `{config.durability}`", hint=f"one of: {', '.join(DURABILITY)}")
    return config
