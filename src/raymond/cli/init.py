"""`raymond init`: wrote the slash commands with which Claude Code worked through loops."""

from raymond.cli.internal_mode import command as command
