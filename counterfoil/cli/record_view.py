"""A record that was kept raw, as a person is shown it: where it was read, its payload masked, its bytes as an act.

For dead letters and held records alike. A payload is shown through the mask only, and not to a reader.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from rich.console import Console
from sqlalchemy import Connection

from counterfoil.cli.choosing import need
from counterfoil.cli.shown import cell
from counterfoil.core.acts import Action
from counterfoil.core.operation_type import Operations
from counterfoil.core.roles import ACTS
from counterfoil.settings import Settings


def looked_at(connection: Connection, cause: UUID) -> tuple[dict[str, Any], bytes | None]:
    """Where a raw record was read and how large it is; and its value, for the mask."""
    from counterfoil.ledger import quarantine

    kept = quarantine.raw_records(connection, [cause])[cause]
    told = {"topic": kept.topic, "partition": kept.partition, "offset": kept.offset, "time": kept.time}
    told |= {"claims_operation": kept.number is not None, "bytes": None if kept.value is None else len(kept.value)}
    return told, kept.value


def masked(settings: Settings, operations: Operations, type_name: str, value: bytes | None) -> tuple[Any, str | None]:
    """The fields of a value, the tagged ones masked; or why they are not shown."""
    from counterfoil.schemas.contracts import Contracts
    from counterfoil.streams.dead_letters.showing import masked

    shown = masked(Contracts(operations, settings.registry_lock), type_name, value)
    return shown.fields, None if shown.why_not is None else shown.why_not.value


def reveal(connection: Connection, name: UUID, where: tuple[int | None, UUID | None], reason: str) -> dict[str, Any]:
    """The untouched bytes of an operation (its number) or of a raw record (its cause): an act, in the same transaction."""
    from counterfoil.ledger import acts, plans, quarantine
    from counterfoil.ledger.names import ledger_of

    number, cause = where
    need(connection, ACTS[Action.REVEAL])
    acts.record(connection, ledger_of(connection), Action.REVEAL, str(name), reason, "shown", number=number)
    if cause is None:
        assert number is not None
        return {"value": plans.current_values(connection, [number])[number].hex()}
    kept = quarantine.raw_records(connection, [cause])[cause]
    headers = [{"name": header, "value": None if value is None else value.hex()} for header, value in kept.headers]
    key, value = (None if part is None else part.hex() for part in (kept.key, kept.value))
    place = {"topic": kept.topic, "partition": kept.partition, "offset": kept.offset}
    return place | {"key": key, "value": value, "headers": headers}


def print_acts(allowed: Sequence[dict[str, Any]], console: Console) -> None:
    """What may be done, and what not now and why."""
    if allowed:
        console.print("\nacts", style="bold")
    for one in allowed:
        if one["allowed"]:
            console.print(cell(f"  {one['act']}: allowed"))
        else:
            console.print(cell(f"  {one['act']}: not now ({one['reason']}): {one['sentence']}. {one['advice']}", "dim"))


def print_payload(payload: Any, withheld: str | None, record: dict[str, Any] | None, console: Console) -> None:
    """Fields, or why there are none; then where the record was read."""
    console.print("\npayload", style="bold")
    if withheld is not None:
        console.print(cell(f"  not shown: {withheld}"))
    elif isinstance(payload, dict):
        for name, value in payload.items():
            console.print(cell(f"  {name}: {value}"))
    if record is not None:
        console.print(cell(f"  record {record['topic']} [{record['partition']}] @ {record['offset']}, {record['bytes']} bytes"))


def print_raw(raw: dict[str, Any] | None, console: Console) -> None:
    """Untouched bytes, in hexadecimal."""
    if raw is not None:
        console.print("\nraw bytes", style="bold")
        for name, value in raw.items():
            console.print(cell(f"  {name}: {value}"))
