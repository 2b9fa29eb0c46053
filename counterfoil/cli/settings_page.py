"""Prints the reference page of the settings: `python -m counterfoil.cli.settings_page`. It reads none.

Names and defaults are the fields', meanings the comments beside them.
"""

import inspect
import re
import sys
from datetime import timedelta
from typing import Any

from pydantic_core import PydanticUndefined

from counterfoil.settings import PREFIX, Settings
from counterfoil.spellings import UNITS

SETTINGS_HEAD = f"""# Settings

Read from `{PREFIX}NAME` variables over a TOML file: the one that `--settings` or `{PREFIX}FILE` names, else `counterfoil.toml` in
the working folder. A duration is a number of seconds or a number with its unit: `5ms`, `30s`, `2m`, `1h`, `7d`. One error lists
every wrong value by name; none is ever printed.

| setting | default | meaning |
| --- | --- | --- |
"""
#: A field's line in the source, and the comment that says what it means, behind it or on the next line.
LINE = re.compile(r"^    (\w+): [^#\n]*(?:#: (.*)|\n    #: (.*))?$", re.MULTILINE)


def _span(value: timedelta) -> str:
    """In the largest unit that it is a whole number of."""
    for name, unit in reversed(UNITS.items()):
        if value % timedelta(seconds=unit) == timedelta(0):
            return f"{value // timedelta(seconds=unit)}{name}"
    return f"{value.total_seconds()}s"


def _default(value: Any) -> str:
    match value:
        case timedelta():
            return f"`{_span(value)}`"
        case None:
            return "none"
        case bool():
            return f"`{str(value).lower()}`"
        case dict() | tuple():
            return "empty"
    return "required" if value is PydanticUndefined else f"`{value}`"


def page() -> str:
    """The table of settings: names and defaults from the fields, meanings from the comments beside them."""
    meanings = {name: behind or below for name, behind, below in LINE.findall(inspect.getsource(Settings))}
    rows = [
        f"| `{name}` | {_default(field.default)} | {meanings.get(name, '').replace('|', chr(92) + '|')} |\n"
        for name, field in Settings.model_fields.items()
    ]
    return SETTINGS_HEAD + "".join(rows)


if __name__ == "__main__":
    sys.stdout.write(page())
