"""The page of states: diagram, transitions and the retry boundary, made from the tables and the decisions themselves.

`python -m counterfoil.core.diagram > docs/reference/states.md`; a test fails when the page is stale. Decides nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from counterfoil.core.decisions import Answered, Kept, Move, lease_over, send_again, settle
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.standing import REVIEW_WITHIN, Rules, Standing
from counterfoil.core.states import DUE, FINAL, State
from counterfoil.core.transitions import TABLE, Actor, Row, is_reported

_S: Final = timedelta(seconds=1)
_NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
_PROBED: Final = Rules(
    name="sample",
    in_ledger=False,
    done_elsewhere=False,
    has_probe=True,
    receipt_confirms=False,
    version_guard=False,
    keyed=True,
    horizon=None,
    by_nature_unique=False,
    request_life=_S,
    read_lag=_S,
    send_grace=_S,
    timeout=_S,
    window=_S,
    deadline=_S,
    first=_S,
    cap=_S,
    share=1.0,
    max_tries=8,
    money=False,
    outcome_within=None,
    review_within=REVIEW_WITHIN,
)
_KINDS: Final = {
    "outside, with a probe": _PROBED,
    "outside, no probe, the sink keeps the key": replace(_PROBED, has_probe=False),
    "outside, no probe, no key": replace(_PROBED, has_probe=False, keyed=False),
    "in the ledger": replace(_PROBED, has_probe=False, keyed=False, in_ledger=True, receipt_confirms=True),
}
_RUNNING: Final = Standing(
    number=1,
    state=State.RUNNING,
    sequence=2,
    attempt=1,
    tries_left=7,
    revision=1,
    generation=0,
    outcome=AttemptOutcome.OPEN,
    admitted_at=_NOW,
    attempt_until=_NOW,
)
_LAST: Final = replace(_RUNNING, attempt=8, tries_left=0)
_DOUBTED: Final = replace(_LAST, doubtful_since=_NOW - _S, doubtful_key=(1, 0), unresolved=True)
_CRASH: Final = "crash or stall"
#: Each answer: who checks it, and what bounds its repetition.
_BOUNDARY: Final = {
    AttemptOutcome.DONE.value: ("worker, when it settles", "never repeated"),
    AttemptOutcome.TEMPORARY.value: (
        "worker, when it settles",
        "`Retry.max_tries`, the first call included; a replay grants new ones",
    ),
    AttemptOutcome.NOT_SENT.value: ("worker, before the first byte", "costs no try: nothing was sent"),
    AttemptOutcome.UNCERTAIN.value: (
        "worker, when it settles",
        "looked at first; repeated only where harmless, within `Retry.max_tries`",
    ),
    AttemptOutcome.PERMANENT.value: ("worker, when it settles", "never repeated by itself"),
    _CRASH: ("due sweeper, when lease or run time is over", "costs its try, like an uncertain answer"),
}


def page() -> str:
    """The whole page as Markdown."""
    lines = [
        "# States, transitions and the retry boundary",
        "",
        "Made by `python -m counterfoil.core.diagram` from the tables in `counterfoil/core/`; do not edit by hand.",
        "",
        *_diagram(),
        "",
        *_states(),
        "",
        *_transitions(),
        "",
        *_boundary(),
    ]
    return "\n".join(lines) + "\n"


def _diagram() -> Iterator[str]:
    yield "```mermaid"
    yield "stateDiagram-v2"
    drawn: dict[tuple[State | None, State], set[Actor]] = {}
    for row in TABLE:
        if Actor.RECOVER in row.who:
            continue
        for source in row.sources:
            for target in row.targets:
                drawn.setdefault((source, target), set()).update(row.who)
    for source in (None, *State):
        for target in State:
            if (source, target) in drawn:
                who = ", ".join(actor.value for actor in Actor if actor in drawn[source, target])
                yield f"    {source or '[*]'} --> {target}: {who}"
    for state in State:
        if state in FINAL or state is State.SUCCEEDED:
            yield f"    {state} --> [*]{': where nobody asks the sink' if state is State.SUCCEEDED else ''}"
    yield "```"
    yield ""
    yield "Recovery, which may set any reported state under a confirmed plan, is not drawn."


def _states() -> Iterator[str]:
    yield "## States"
    yield ""
    yield "| state | final | reported on the state topic | its due time means |"
    yield "| --- | --- | --- | --- |"
    for state in State:
        final = "yes" if state in FINAL else "where nobody asks the sink" if state is State.SUCCEEDED else "no"
        yield f"| `{state}` | {final} | {'yes' if is_reported(state) else 'no'} | {DUE.get(state, 'none')} |"


def _transitions() -> Iterator[str]:
    yield "## Transitions"
    yield ""
    yield "Each raises the sequence by one and writes its event in the same transaction; a decision on an older sequence is void."
    yield ""
    yield "| from | to | who | only if | event |"
    yield "| --- | --- | --- | --- | --- |"
    for row in TABLE:
        sources = ", ".join(["(new)"] * (None in row.sources) + [f"`{state}`" for state in State if state in row.sources])
        targets = ", ".join(f"`{state}`" for state in State if state in row.targets)
        yield f"| {sources} | {targets} | {_who(row)} | {row.condition} | `{row.kind}` |"


def _who(row: Row) -> str:
    return ", ".join(actor.value for actor in Actor if actor in row.who)


def _boundary() -> Iterator[str]:
    yield "## The retry boundary"
    yield ""
    yield "What each answer of an attempt leads to, as the decisions themselves say it for a sample of each kind of effect."
    yield ""
    yield "| answer | checked by | limit | effect | tries left | at the limit | at the limit, an earlier attempt doubtful |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for answer, (checked, limit) in _BOUNDARY.items():
        for kind, rules in _KINDS.items():
            after = [_after(rules, standing, answer) for standing in (_RUNNING, _LAST)]
            # An attempt in the ledger is never doubtful, so none can stand before another.
            after.append("–" if rules.in_ledger else _after(rules, _DOUBTED, answer))
            yield f"| {answer} | {checked} | {limit} | {kind} | {' | '.join(after)} |"


def _after(rules: Rules, standing: Standing, answer: str) -> str:
    if answer == _CRASH:
        move: Move | Kept | None = lease_over(rules, standing, lease_over=True, now=_NOW)
    else:
        answered = Answered(standing.attempt, AttemptOutcome(answer), answer)
        move = settle(rules, standing, answered, now=_NOW, jitter=0.0, sampled=True)
    assert isinstance(move, Move)
    text = f"`{move.to}`{' (final)' if move.wait is None else ''}{', the try given back' if move.try_back else ''}"
    if move.to is State.RETRY_WAIT and standing.tries_left == 0 and not move.try_back:
        text += ", then `quarantined`: no try is left"
    if move.to is State.AWAITING_CONFIRMATION:
        text += _next(rules, standing, move)
    return text


def _next(rules: Rules, standing: Standing, move: Move) -> str:
    """Whose turn it is in awaiting_confirmation."""
    if rules.has_probe:
        return ", then probed"
    since = standing.doubtful_since or standing.admitted_at
    waiting = replace(standing, state=move.to, outcome=move.outcome, doubtful_since=since, doubtful_key=(1, 0))
    again = send_again(rules, waiting, now=_NOW)
    return f", then `{again.to}` under the same key" if again is not None else ", then a person"


if __name__ == "__main__":
    sys.stdout.write(page())
