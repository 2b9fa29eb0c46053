"""Texts that somebody else chose, as they may be shown: what a terminal would obey, or turn round, is printed as its escape.

Nothing that a caller or a sink wrote reaches a terminal in any other way.
"""

import re
from functools import lru_cache
from unicodedata import category

from rich.text import Text

_UNSAFE = frozenset({"Cc", "Cf", "Cs"})  #: control characters, format characters (U+202E), lone surrogates
_NOT_ASCII = re.compile(r"[^\x20-\x7e\n]")


def _escape(letter: str) -> str:
    number = ord(letter)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _escape_in_json(letter: str) -> str:
    number = ord(letter)
    if number < 0x10000:
        return f"\\u{number:04x}"
    return f"\\u{0xD7C0 + (number >> 10):04x}\\u{0xDC00 + (number & 0x3FF):04x}"


@lru_cache(maxsize=1024)
def _unsafe(letter: str) -> bool:
    return category(letter) in _UNSAFE


def shown(text: str) -> str:
    """The text with each such character as \\xNN, \\uNNNN or \\UNNNNNNNN."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(letter) if _unsafe(letter) else letter for letter in text)


def shown_json(json: str) -> str:
    """The same object with each such character as JSON's own escape; it decodes to the same texts."""
    return _NOT_ASCII.sub(lambda found: _escape_in_json(found[0]) if _unsafe(found[0]) else found[0], json)


def cell(text: str, style: str = "") -> Text:
    """A cell or a line of a screen."""
    return Text(shown(text), style=style)
