"""The exit codes of every command: one table, for the commands, for their help and for the reference page.

Codes are part of the interface: one that is here keeps its meaning.
"""

from enum import IntEnum


class Exit(IntEnum):
    """What a command's end means to the shell that called it."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> "Exit":
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    OK = 0, "Done, or everything that was looked at is right."
    REFUSED = 1, "Refused by the ledger's rules, or a check found something wrong; nothing was changed by a refusal."
    USAGE = 2, "The command line or the settings cannot be used as they are."
    UNREACHABLE = 3, "The database, a broker or another part cannot be reached, or was lost for longer than `stop_after`."
    FAULT = 4, "A fault of Counterfoil or of a declared function; the log names its class and place."


def table() -> str:
    """The table as Markdown."""
    rows = "".join(f"| {one.value} | {one.name.lower()} | {one.meaning} |\n" for one in Exit)
    return "| code | name | meaning |\n| --- | --- | --- |\n" + rows
