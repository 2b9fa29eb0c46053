"""How the values of settings may be spelt, and what they mean: durations, addresses, tables, lists.

Each function raises ValueError with what is allowed, in words, and must never repeat what was given: it may be a password.
"""

import re
from datetime import timedelta

import orjson
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

DRIVER = "postgresql+psycopg"

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")
LEDGER = re.compile(r"[a-z][a-z0-9_-]{0,39}")
MODULE_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
BROKER = re.compile(r"(?:\w+://)?(?:\[[0-9A-Fa-f:.%\w]+\]|[^\s:/,\[\]]+):(\d{1,5})")


def duration(value: object) -> timedelta:
    """A timedelta from seconds or from "7d"; raises ValueError, which does not repeat what was given."""
    if isinstance(value, timedelta):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e10:
        return timedelta(seconds=value)
    if isinstance(value, str) and len(value) <= 20 and (match := DURATION.fullmatch(value.strip())):
        seconds = float(match[1]) * UNITS[match[2] or "s"]
        if seconds < 1e10:
            return timedelta(seconds=seconds)
    raise ValueError('a duration is a number of seconds or a number with its unit, like "5ms", "30s", "7d"')


def ledger(value: object) -> object:
    """The ledger's name; it becomes part of topics, keys and ids."""
    if not isinstance(value, str) or not LEDGER.fullmatch(value):
        raise ValueError("a name of 1 to 40 lower-case letters, digits, - and _, the first of them a letter, like shop")
    return value


def operations(value: object) -> object:
    """Where the declared types are."""
    if not isinstance(value, str) or not MODULE_NAME.fullmatch(value):
        raise ValueError("the module of the declared types, a colon and their name in it, like shop:OPERATIONS")
    return value


def database(value: object) -> object:
    """Name psycopg 3 as the driver, whatever of the usual spellings was used."""
    if not isinstance(value, str):
        raise ValueError("must be a URL, like postgresql://user@host/database")
    try:
        url = make_url(value)
    except (ArgumentError, ValueError):
        raise ValueError("is not a URL, like postgresql://user@host/database") from None
    if url.drivername not in {"postgresql", "postgres", DRIVER}:
        raise ValueError("must begin with postgresql:// (the driver is psycopg 3)")
    return url.set(drivername=DRIVER).render_as_string(hide_password=False)


def brokers(value: object) -> object:
    """Addresses with their ports: without one, librdkafka would take a default and fail much later."""
    text = value.strip() if isinstance(value, str) else ""
    if text == "embedded":
        raise ValueError("the embedded broker exists in `counterfoil demo` and in unit tests only; name real brokers")
    found = [BROKER.fullmatch(broker.strip()) for broker in text.split(",")]
    if not all(one and 0 < int(one[1]) < 65536 for one in found):
        raise ValueError('one text of host:port, with commas between several, like "one:9092,two:9092"; each needs its port')
    return value


def table(value: object) -> object:
    """A table in TOML; one JSON object in a variable."""
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        raise ValueError("in a variable it is one JSON object of texts") from None


def words(value: object) -> object:
    """A list in TOML; words with commas between them in a variable."""
    return tuple(word.strip() for word in value.split(",") if word.strip()) if isinstance(value, str) else value
