"""The completion scripts of the shells: they ask the `raymond` of the PATH, and never hang or print an error.

Words go to it as they were typed, one argument each. It answers with lines: `plain`, a word and what it is; or `file`
or `dir`, which leaves names of files to the shell. A program that the PATH names by a relative path is never started:
it could be one of a checkout.
"""

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
