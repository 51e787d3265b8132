"""Every finding there is: its id, its severity, and whether an author may silence it."""

from typing import Literal, TypeAlias

from msgspec import Struct

from raymond.language.refusal import RefusalKind

Severity: TypeAlias = Literal["error", "warning"]


class Finding(Struct, frozen=True, kw_only=True):
    """One kind of mistake that a workflow can have."""

    severity: Severity = "error"
    firm: bool = False
    """No comment silences it: the run could not start, or would not be safe."""
    later: bool = False
    """Reserved: it can be silenced today and is reported by a later release."""


_ERROR = Finding()
_FIRM = Finding(firm=True)
_WARNING = Finding(severity="warning")
_LATER = Finding(severity="warning", later=True)

FINDINGS: dict[str, Finding] = {
    # The workflow as a whole: store/loader, store/zips.
    "not-found": _FIRM,
    "not-a-workflow": _FIRM,
    "empty-workflow": _FIRM,
    "unreadable": _FIRM,
    "not-utf8": _FIRM,
    "too-large": _FIRM,
    "bad-zip": _FIRM,
    "hash-mismatch": _FIRM,
    "unsafe-link": _FIRM,
    "unsafe-name": _FIRM,
    # Its states: workflow, lint.
    "no-entry": _FIRM,
    "ambiguous-entry": _FIRM,
    "missing-target": _ERROR,
    "ambiguous-target": _ERROR,
    "wrong-platform": _ERROR,
    "unsafe-target": _FIRM,
    "script-syntax": _ERROR,
    # Frontmatter and workflow.yaml: frontmatter, policy, policy_keys, settings.
    "bad-frontmatter": _FIRM,
    "unknown-key": _ERROR,
    "bad-value": _ERROR,
    "force-implicit-invalid": _FIRM,
    # Tags in prompts: lint.
    "missing-return": _ERROR,
    "missing-next": _ERROR,
    "next-mismatch": _ERROR,
    "unknown-attribute": _ERROR,
    "no-transition": _ERROR,
    "misspelt-tag": _WARNING,
    "unclosed-tag": _WARNING,
    "unquoted-attribute": _WARNING,
    "foreign-tag": _WARNING,
    "script-tag": _WARNING,
    # What a state says and does not say: lint.
    "dead-end": _WARNING,
    "timeout-approves": _WARNING,
    "no-choice": _WARNING,
    "empty-state": _WARNING,
    "unbound-variable": _WARNING,
    "missing-include": _WARNING,
    "gate-command-deletes": _WARNING,
    "gate-command-masked": _WARNING,
    "gate-command-unknown": _WARNING,
    "gate-bypass": _WARNING,
    "no-gate": _WARNING,
    # What only a start can know: store/loader, backends/scripted, control/preflight, control/preview.
    "backend-missing": _WARNING,
    "misnamed-file": _WARNING,
    "unknown-reply": _WARNING,
    "unknown-effort": _WARNING,
    "unknown-setting": _WARNING,
    "bash-syntax": _WARNING,
    # What the run would be allowed to do: machine/rights, control/preflight, lint.
    "wider-permission": _FIRM,
    "unheeded-right": _FIRM,
    "call-in-place": _FIRM,
    "secret-in-state": _ERROR,
    "gate-command-unsafe": _FIRM,
    # Scripted replies: backends/replies.
    "bad-reply": _FIRM,
    # Comments that silence findings: lint, settings.
    "bad-ignore": _WARNING,
    "unused-ignore": _WARNING,
    "unreachable-state": _LATER,
    "call-never-returns": _LATER,
    "unbounded-cycle": _LATER,
    "policy-body-mismatch": _LATER,
    "unused-transition": _LATER,
    "backend-change": _LATER,
    "parallel-writers": _LATER,
    "fork-never-waited": _LATER,
    "script-not-analysed": _LATER,
}

OF_NAME: dict[RefusalKind, str] = {
    "unknown_state": "missing-target",
    "ambiguous_state": "ambiguous-target",
    "wrong_platform": "wrong-platform",
    "unsafe_name": "unsafe-target",
}
"""The finding that reports why a name leads to no state."""
MISSING = {"return": "missing-return", "next": "missing-next"}
"""The finding that reports that a tag lacks an attribute."""
