"""What `check` looks at on the brokers: whether they answer, and the declared types' topics, with or without the ledger.

It reads only. A finding has names, counts and what to do; never a setting's value, an address or an exception's text.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from counterfoil.cli.exits import Exit
from counterfoil.cli.finding import Finding, Mark
from counterfoil.cli.topics import EMBEDDED
from counterfoil.cli.trouble import sorted_out
from counterfoil.core.operation_type import Operations
from counterfoil.settings import Settings

if TYPE_CHECKING:
    from counterfoil.streams.topics.admin import TopicAdmin


def look(settings: Settings, operations: Operations | None, *, accepted: Mapping[str, int] | None) -> Iterator[Finding]:
    """Every finding. `operations` is None where the types could not be loaded, `accepted` where the ledger could not be read."""
    if settings.embedded:
        yield Finding("topics", Mark.NOTE, EMBEDDED, "For anything but the demo: name real brokers, and unset `embedded`.")
        return
    from counterfoil.streams.topics.admin import TopicAdmin

    try:
        admin = TopicAdmin(settings.brokers, settings.kafka)
        count = admin.known()[1]
    except Exception as error:  # noqa: BLE001 - brokers and their client raise many kinds; told by class, like every error
        yield _failed("brokers", error)
        yield Finding("topics", Mark.SKIPPED, "no broker answers")
        return
    yield Finding("brokers", Mark.OK, f"{count} {'answers' if count == 1 else 'answer'}")
    if operations is None:
        yield Finding("topics", Mark.SKIPPED, "the operation types could not be loaded")
    else:
        yield from _topics(admin, settings, operations, accepted)


def _topics(
    admin: "TopicAdmin", settings: Settings, operations: Operations, accepted: Mapping[str, int] | None
) -> Iterator[Finding]:
    from counterfoil.streams.topics import plan

    if accepted is None:
        yield Finding("partition counts", Mark.SKIPPED, "the ledger, which knows the accepted ones, could not be read")
    try:
        flaws = plan.look(admin, plan.choice_of(settings), operations, accepted or {}).flaws
    except Exception as error:  # noqa: BLE001 - as above
        yield _failed("topics", error)
        return
    for flaw in flaws:
        yield Finding(f"topic {flaw.topic}", Mark.NOTE if flaw.code == "unseen" else Mark.WRONG, flaw.what, flaw.todo)
    if not flaws:
        yield Finding("topics", Mark.OK, "every topic of the declared types is as it should be")


def _failed(name: str, error: Exception) -> Finding:
    trouble = sorted_out(error)
    mark = Mark.UNREACHABLE if trouble.exit is Exit.UNREACHABLE else Mark.WRONG
    return Finding(name, mark, trouble.what, trouble.advice)
