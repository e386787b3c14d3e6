"""Does this agent suffer from primacy bias? One answer from calibrated signs.

Every sign that the calibration admits has a threshold. An agent's sign is

- `present` if at least three quarters of its seeds lie beyond the threshold,
- `absent` if at most one quarter does,
- `perhaps` in between.

With one seed, its measurements take the place of the seeds. The verdict is `clear signs` if
more than half of the signs that could be looked at are present, `no sign` if all are absent, `some
signs` in between, and `cannot tell` if no calibrated sign was recorded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from diagnostics.diagnosis import divergence
from diagnostics.diagnosis.advice import Advice, advise
from diagnostics.diagnosis.calibration import Calibration
from diagnostics.diagnosis.signs import SIGNS, Sign
from diagnostics.metrics import student
from diagnostics.runs.directories import RunFiles
from diagnostics.runs.load import Runs, load

AGREEMENT = 0.75
"""Share of seeds, or of one seed's measurements, that must lie beyond a threshold."""

CLEAR, SOME, NONE, UNKNOWN = "clear signs", "some signs", "no sign", "cannot tell"
VERDICTS = (CLEAR, SOME, UNKNOWN, NONE)
"""The most urgent first."""


@dataclass(frozen=True)
class Finding:
    """One sign of one agent.

    Attributes:
        sign, title, probe, cannot_tell: see `diagnostics.diagnosis.signs.Sign`.
        state: `present`, `perhaps`, `absent`; `not used` for a sign that did not separate known
            agents; `not recorded`.
        why: for one that was not recorded, what the run says about it; else empty.
        value: mean over seeds, or over the measurements of one seed; second half of training.
        low, high: its 95 % interval (Student's); None with a single number.
        numbers: how many numbers the interval rests on.
        over: what these are: `seeds` or `measurements` (which are neighbours in time and less
            independent than the interval takes them for).
        threshold: beyond which the sign counts; None if it is not used.
        worse: on which side of it, `above` or `below`.
        beyond: share of these numbers that lie there.
        beyond_unprimed, beyond_primed: share of the unprimed and of the primed runs of the
            calibration that have less of the sign.
        nearest_dose: the dose whose median is nearest, among SAC without LayerNorm and cure.
    """

    sign: str
    title: str
    probe: str
    cannot_tell: str
    state: str
    why: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    numbers: int = 0
    over: str = ""
    threshold: float | None = None
    worse: str = ""
    beyond: float | None = None
    beyond_unprimed: float | None = None
    beyond_primed: float | None = None
    nearest_dose: int | None = None


@dataclass(frozen=True)
class Diagnosis:
    """The answer for the seeds of one agent on one task.

    Attributes:
        verdict: `clear signs`, `some signs`, `no sign` or `cannot tell`.
        sentence: the verdict in words.
        findings: calibrated signs first, then those that are not used or were not recorded.
        advice: what to try, the best-supported first.
        notes: what limits the answer.
    """

    task: str
    label: str
    seeds: int
    runs: tuple[str, ...]
    verdict: str
    sentence: str
    findings: tuple[Finding, ...]
    advice: tuple[Advice, ...]
    notes: tuple[str, ...]

    def of(self, state: str) -> tuple[Finding, ...]:
        """The findings in one state."""
        return tuple(finding for finding in self.findings if finding.state == state)


def diagnose(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    calibration: str | os.PathLike[str] | None = None,
) -> list[Diagnosis]:
    """Diagnose every agent below some paths; the seeds of one agent get one answer.

    Args:
        paths: run directories, or folders that hold them.
        calibration: a table made by `fog calibrate`; None is the one that comes with this package.

    Raises:
        AnalysisError: a path does not exist, or the calibration cannot be read.
    """
    known = Calibration.read(None if calibration is None else Path(calibration))
    return diagnoses(load(paths), known)


def diagnoses(runs: Runs, calibration: Calibration, *, every: bool = True) -> list[Diagnosis]:
    """One diagnosis for each task and label among the runs.

    Args:
        runs: what to diagnose.
        calibration: decides which signs count, and from where.
        every: look at the signs too that do not count; without them many runs are read faster.
    """
    looked = [sign for sign in SIGNS if every or sign.name in calibration.thresholds]
    late = {sign.name: sign.late(runs) for sign in looked}
    sizes = divergence.sizes(runs)
    found = []
    for _, names in runs.identity.groupby(["task", "label"], sort=False)["run"]:
        chosen = set(names)
        own = {name: table[table["run"].isin(chosen)] for name, table in late.items()}
        facts = runs.runs[runs.runs["run"].isin(chosen)]
        first = next(run for run in runs.files if run.where in chosen)
        values = sizes[sizes.index.isin(chosen)]
        found.append(_diagnosis(facts, first, own, looked, calibration, values))
    return found


def _diagnosis(
    facts: pd.DataFrame,
    first: RunFiles,
    late: Mapping[str, pd.DataFrame],
    looked: Sequence[Sign],
    calibration: Calibration,
    values: pd.DataFrame,
) -> Diagnosis:
    """The answer for runs that differ in their seed only."""
    findings = sorted(
        (_finding(sign, late[sign.name], _unmeasured(first), calibration) for sign in looked),
        key=lambda found: _ORDER.index(found.state),
    )
    verdict = _verdict(findings)
    return Diagnosis(
        task=str(facts["task"].iloc[0]),
        label=str(facts["label"].iloc[0]),
        seeds=len(facts),
        runs=tuple(facts["run"]),
        verdict=verdict,
        sentence=_sentence(verdict, findings),
        findings=tuple(findings),
        advice=advise(facts.iloc[0], first.config, calibration) if verdict in (CLEAR, SOME) else (),
        notes=tuple(_notes(facts, findings, verdict, values)),
    )


_ORDER = ("present", "perhaps", "absent", "not used", "not recorded")


def _unmeasured(run: RunFiles) -> Mapping[str, Any]:
    """What adapters wrote down about probes that could not measure an agent."""
    reasons = run.manifest.get("unmeasured")
    return reasons if isinstance(reasons, Mapping) else {}


def _finding(
    sign: Sign, late: pd.DataFrame, unmeasured: Mapping[str, Any], calibration: Calibration
) -> Finding:
    about = (sign.name, sign.title, sign.probe, sign.cannot_tell)
    threshold = calibration.thresholds.get(sign.name)
    if late.empty:
        why = str(unmeasured.get(sign.probe, ""))
        return Finding(*about, "not recorded", why=why, threshold=threshold)
    by_seed = late.groupby("run")["value"].mean().to_numpy(np.float64)
    over = "seeds" if len(by_seed) > 1 else "measurements"
    values = by_seed if len(by_seed) > 1 else late["value"].to_numpy(np.float64)
    interval = student.mean(values)
    turn = 1 if sign.higher else -1
    beyond = None if threshold is None else float(np.mean(turn * values > turn * threshold))
    return Finding(
        *about,
        state=_state(beyond),
        value=interval.estimate,
        low=_known(interval.low),
        high=_known(interval.high),
        numbers=len(values),
        over=over,
        threshold=threshold,
        worse="above" if sign.higher else "below",
        beyond=beyond,
        **_place(sign, interval.estimate, calibration),
    )


def _state(beyond: float | None) -> str:
    if beyond is None:
        return "not used"
    if beyond >= AGREEMENT:
        return "present"
    return "absent" if beyond <= 1 - AGREEMENT else "perhaps"


def _place(sign: Sign, value: float, calibration: Calibration) -> dict[str, Any]:
    """Where a value lies among the agents of known dose."""
    rows = calibration.values[calibration.values["set"] == "calibration"]
    rows = rows[rows[sign.name].notna()]
    turn = 1 if sign.higher else -1
    shares = {}
    for group in ("unprimed", "primed"):
        values = turn * rows[sign.name][rows["group"] == group]
        shares[f"beyond_{group}"] = float((values < turn * value).mean()) if len(values) else None
    doses = rows[(rows["cure"] == "none") & ~rows["layer_norm"]].groupby("dose")[sign.name].median()
    nearest = int((doses - value).abs().idxmin()) if len(doses) else None
    return {**shares, "nearest_dose": nearest}


def _verdict(findings: Iterable[Finding]) -> str:
    states = [found.state for found in findings]
    looked = [state for state in states if state in ("present", "perhaps", "absent")]
    if not looked:
        return UNKNOWN
    if 2 * looked.count("present") > len(looked):
        return CLEAR
    return NONE if looked.count("absent") == len(looked) else SOME


def _sentence(verdict: str, findings: Iterable[Finding]) -> str:
    findings = list(findings)
    looked = [found for found in findings if found.state in ("present", "perhaps", "absent")]
    present = sum(found.state == "present" for found in looked)
    perhaps = sum(found.state == "perhaps" for found in looked)
    missing = [found for found in findings if found.state == "not recorded"]
    if verdict == UNKNOWN:
        probes = _probes(found for found in missing if found.threshold is not None)
        if probes:
            return f"Cannot tell: none of the probes that can tell was on ({', '.join(probes)})."
        return "Cannot tell: no sign has been found that tells biased agents from healthy ones."
    count = f"{present} of {len(looked)} calibrated signs {'is' if present == 1 else 'are'} present"
    if verdict == NONE:
        return f"No sign of primacy bias: none of {len(looked)} calibrated signs is present."
    more = f", {perhaps} more perhaps" if perhaps else ""
    return f"{verdict[0].upper()}{verdict[1:]} of primacy bias: {count}{more}."


def _notes(
    facts: pd.DataFrame, findings: Iterable[Finding], verdict: str, values: pd.DataFrame
) -> Iterable[str]:
    if verdict in (CLEAR, SOME) and (divergent := divergence.note(values)):
        yield divergent
    unfinished = facts[(facts["status"] != "finished") & (facts["env_step"] < facts["steps"])]
    for run in unfinished.itertuples():
        share = 100 * run.env_step / run.steps
        yield f"{run.run} is {run.status} at {share:.0f} % of its steps: judged by what is there."
    missing = [
        found for found in findings if found.state == "not recorded" and found.threshold is not None
    ]
    for probe, why in {found.probe: found.why for found in missing if found.why}.items():
        yield f"Not looked at: {probe}, because {why}."
    missing = [found for found in missing if not found.why]
    if missing:
        names = " ".join(_probes(missing))
        yield f"Some signs were not recorded: train with `--probes {names}`."
    if len(facts) == 1:
        yield "One seed: intervals are over measurements of one run, and other seeds may differ."


def _probes(findings: Iterable[Finding]) -> list[str]:
    return list(dict.fromkeys(found.probe for found in findings))


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None
