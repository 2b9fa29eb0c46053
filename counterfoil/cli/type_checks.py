"""What `check` looks at in the declared types: contracts, mistakes that can be seen without a server, texts that are missing.

It reads only. A missing text is no mistake: it is a page that a team cannot file.
"""

from __future__ import annotations

from collections.abc import Iterator

from counterfoil.cli.finding import Finding, Mark
from counterfoil.core.errors import CounterfoilError
from counterfoil.core.operation_type import Operations
from counterfoil.settings import Settings, SettingsError, load_operations


def look(settings: Settings) -> tuple[Operations | None, list[Finding]]:
    """The types, where they could be imported, and every finding."""
    try:
        operations = load_operations(settings.operations)
    except SettingsError as error:
        told = "; ".join(expected for _, expected in error.wrong)
        return None, [Finding("types", Mark.WRONG, told, "Correct the module that the setting `operations` names.")]
    named = ", ".join(one.name for one in operations.types)
    found = [Finding("types", Mark.OK, f"{len(operations.types)} declared: {named}")]
    return operations, [*found, *_contracts(operations, settings), *_mistakes(operations, settings), *_texts(operations)]


def _contracts(operations: Operations, settings: Settings) -> Iterator[Finding]:
    from counterfoil.schemas.contracts import Contracts

    contracts = Contracts(operations, settings.registry_lock)
    for one in operations.types:
        name = f"contract of {one.name}"
        try:
            contract = contracts.of(one.name)
        except CounterfoilError as error:
            yield Finding(name, Mark.WRONG, str(error), "Correct the contract, or run `counterfoil init`.")
        else:
            yield Finding(name, Mark.OK, f"{contract.subject}, version {contract.version}, id {contract.schema_id}")


def _mistakes(operations: Operations, settings: Settings) -> Iterator[Finding]:
    """As a user's own test finds them. What does not fit its contract is that contract's finding already."""
    from counterfoil.testing.mistakes import of_declarations

    for mistake in of_declarations(operations, settings.send_grace):
        yield Finding(f"type {mistake.type}", Mark.WRONG, mistake.rule, f"{mistake.remedy[0].upper()}{mistake.remedy[1:]}.")


def _texts(operations: Operations) -> Iterator[Finding]:
    for one in operations.types:
        if missing := one.texts.missing:
            todo = f"Write texts=Texts(…); `counterfoil policy show {one.name}` shows where they stand."
            yield Finding(f"texts of {one.name}", Mark.NOTE, f"missing: {', '.join(missing)}", todo)
