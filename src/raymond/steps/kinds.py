"""Which kind of step does a job."""

from collections.abc import Mapping

from raymond.backends import Backend, Direct
from raymond.steps.job import GateJob, PatternJob, ScriptJob, TurnJob
from raymond.steps.script_step import ScriptStep
from raymond.steps.step import Host, Step


def step_for(
    host: Host, job: ScriptJob | TurnJob | GateJob | PatternJob, backends: Mapping[str, Backend | Direct]
) -> Step:
    """The step that does `job`; it is not started yet."""
    if isinstance(job, ScriptJob):
        if job.origin:
            from raymond.steps.own_script import OwnScriptStep

            return OwnScriptStep(host, job)
        return ScriptStep(host, job)
    if isinstance(job, GateJob):
        from raymond.steps.gate_step import GateStep

        return GateStep(host, job)
    if isinstance(job, PatternJob):
        from raymond.steps.pattern_step import PatternStep

        return PatternStep(host, job)
    backend = backends.get(job.backend)
    if backend is None:
        return Step(host, job)  # the workflow changed, and its backend is gone: such a step can only be given up
    # A run of scripts starts without either.
    if isinstance(backend, Direct):
        from raymond.steps.direct_turn import DirectTurn

        return DirectTurn(host, job, backend)
    from raymond.steps.program_turn import ProgramTurn

    return ProgramTurn(host, job, backend)
