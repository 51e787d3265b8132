"""`raymond completion`: the scripts that let shells complete what is typed, and what can come next.

The scripts ask the `raymond` of the PATH, and never hang or print an error. Words go to it as they were typed, one
argument each. It answers with lines: `plain`, a word and what it is; or `file` or `dir`, which leaves names of files to
the shell. A program that the PATH names by a relative path is never started: it could be one of a checkout.
"""

import os
import shlex
import signal
import sys

from click.shell_completion import CompletionItem, ShellComplete

from raymond.cli import COMMANDS, COMPLETE, go_to, is_path
from raymond.cli.by_click import group
from raymond.cli.command import argument, as_command
from raymond.errors import UsageError
from raymond.patterns import regex
from raymond.text import visible

_WORK, _PATIENCE = 2.0, 10.0
"""Seconds of work, and of waiting for a disk or a busy machine, after which a person who pressed Tab gets nothing."""
_SAFE = regex(r"[\w@%+=,./-]+")
"""Words that mean the same in every shell, quoted or not; others are not offered."""

BASH = r"""_raymond_completion() {
    local program kind value told
    COMPREPLY=()
    program=$(type -P raymond) || return 0
    [[ $program == /* ]] || return 0
    while IFS=$'\t' read -r kind value told; do
        case $kind in
            plain) COMPREPLY+=("$value") ;;
            file) compopt -o default 2>/dev/null ;;
            dir) compopt -o dirnames 2>/dev/null ;;
        esac
    done < <(_RAYMOND_COMPLETE=bash "$program" "${COMP_WORDS[@]:1:COMP_CWORD}" </dev/null 2>/dev/null)
    return 0
}
complete -o nosort -F _raymond_completion raymond 2>/dev/null || complete -F _raymond_completion raymond
"""

ZSH = r"""#compdef raymond
_raymond_completion() {
    local program=${commands[raymond]} kind value told is_file is_dir
    local -a values described
    [[ $program == /* ]] || return 1
    while IFS=$'\t' read -r kind value told; do
        case $kind in
            plain) values+=("$value"); described+=("$value${told:+  -- $told}") ;;
            file) is_file=1 ;;
            dir) is_dir=1 ;;
        esac
    done < <(_RAYMOND_COMPLETE=zsh "$program" "${(@Q)words[2,CURRENT]}" </dev/null 2>/dev/null)
    (( $#values )) && compadd -V raymond -d described -a values
    [[ -n $is_file ]] && _files
    [[ -n $is_dir ]] && _files -/
    return 0
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _raymond_completion "$@"
elif (( $+functions[compdef] )); then
    compdef _raymond_completion raymond
fi
"""

FISH = r"""function __raymond_completion
    set -l program (command -s raymond)
    string match -q '/*' -- "$program"; or return
    set -l current (commandline -ct)
    test (count $current) -eq 1; or set current ''
    set -l typed (commandline -opc)
    for line in (env _RAYMOND_COMPLETE=fish $program $typed[2..-1] $current </dev/null 2>/dev/null)
        set -l parts (string split \t -- $line)
        switch $parts[1]
            case plain
                printf '%s\t%s\n' $parts[2] $parts[3]
            case file
                __fish_complete_path $current
            case dir
                __fish_complete_directories $current
        end
    end
end
complete --no-files --command raymond --arguments '(__raymond_completion)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


@as_command("completion")
@argument("shell", metavar="bash|zsh|fish", complete=lambda *_: [*SCRIPTS])
def command(shell: str) -> int:
    """Print the completion script for SHELL; e.g. in ~/.bashrc: eval "$(raymond completion bash)"."""
    if shell not in SCRIPTS:
        raise UsageError(f"there is no completion for `{shell}`", hint=f"there is one for {', '.join(SCRIPTS)}")
    sys.stdout.write(SCRIPTS[shell])
    return 0


def print_completions(shell: str, words: list[str]) -> None:
    """Print what can take the place of the last of `words`."""
    for number, timer, seconds in (
        (signal.SIGALRM, signal.ITIMER_REAL, _PATIENCE),
        (signal.SIGPROF, signal.ITIMER_PROF, _WORK),
    ):
        signal.signal(number, lambda *_: os._exit(0))
        signal.setitimer(timer, seconds)
    *typed, current = [_unquoted(word) for word in words] or [""]
    before = ""
    if shell == "bash":
        typed = [word for word in typed if word != "="]  # bash takes --flag=value apart
        current = "" if current == "=" else current
    elif current.startswith("--") and "=" in current:
        before = f"{current.partition('=')[0]}="
    lines = [_line(item, before) for item in completions(typed, current)]
    sys.stdout.buffer.write("".join(filter(None, lines)).encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def completions(typed: list[str], current: str) -> list[CompletionItem[str]]:
    """What can come after the words that were `typed`, and begins with `current`."""
    if "-C" in typed[:-1:2]:
        typed = go_to([os.path.expanduser(word) for word in typed])
    if typed and typed[0] not in COMMANDS and is_path(typed[0]):
        typed = ["run", *typed]
    return ShellComplete(group, {}, "raymond", COMPLETE).get_completions(typed, current)


def _line(item: CompletionItem[str], before: str) -> str:
    if item.type in ("file", "dir"):
        return f"{item.type}\n"
    value = f"{before}{item.value}"
    return f"plain\t{value}\t{visible(item.help or '')}\n" if _SAFE.fullmatch(value) else ""


def _unquoted(word: str) -> str:
    """A word as the shell would understand it, as far as it has been typed."""
    for end in ("", "'", '"'):
        try:
            return "".join(shlex.split(word + end))
        except ValueError:
            continue
    return word
