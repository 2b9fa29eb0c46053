"""The report store's own journal: what took the place of what, written around the rename and under one lock.

A worker that is killed between the two lines leaves the first one; the file that is there says whether the rename happened.
"""

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from counterfoil.core.records import Attempt
from counterfoil.sinks.files import StoredFile, head
from counterfoil.sinks.journal import Entry, Fate, Journal

JOURNAL = "journal.jsonl"


def publish(part: Path, place: Path, stored: StoredFile, attempt: Attempt) -> None:
    """Move a finished file to its place, journalled beside the folder of the reports."""
    with Journal(place.parent.parent / JOURNAL).alone() as append:
        planned = Entry(
            request=f"{attempt.operation_id}.{attempt.number}",
            fate=Fate.HELD,
            entity=place.name,
            digest=stored.sha256,
            at=time.time(),
            key=attempt.key,
            operation=str(attempt.operation_id),
            row=f"{place.parent.name}/{place.name}",
            changed_content=False,
        )
        changed = _there(place) != stored
        append(planned)
        os.replace(part, place)
        append(replace(planned, fate=Fate.APPLIED, changed_content=changed))


def stored_entries(folder: Path) -> list[Entry]:
    """The store's journal, with a rename that nobody lived to note told from one that did not happen."""
    entries = Journal(folder / JOURNAL).entries()
    noted = {entry.request for entry in entries if entry.applied}
    kept = [entry for entry in entries if entry.applied]
    for place, entry in enumerate(entries):
        if entry.fate is Fate.HELD and entry.request not in noted:
            kept.append(_settled(folder, entry, entries[:place], entries[place + 1 :]))
    return kept


def _settled(folder: Path, entry: Entry, before: Sequence[Entry], after: Sequence[Entry]) -> Entry:
    """An entry without its second line: what the next writer of that path found, or what is there now, explains it."""
    following = next((one for one in after if one.row == entry.row and one.applied), None)
    there = _there(folder / (entry.row or ""))
    happened = not following.changed_content if following else there is not None and there.sha256 == entry.digest
    if not happened:
        return replace(entry, fate=Fate.DROPPED)
    already = any(one.row == entry.row and one.digest == entry.digest and one.changed_content for one in before)
    return replace(entry, fate=Fate.APPLIED, changed_content=not already)


def _there(place: Path) -> StoredFile | None:
    try:
        return head(place)
    except FileNotFoundError:
        return None
