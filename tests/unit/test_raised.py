"""What is said of an exception that an effect raised: its class and a place in the user's own code, never a text or a path."""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from counterfoil.core.failures import Errors
from counterfoil.core.raised import LONGEST, Raised, class_name, place_name
from counterfoil.streams.worker.answers import WrongAnswer, raised
from counterfoil.streams.worker.looking import looked_at
from counterfoil.telemetry.lines import PLAIN
from tests.support.planted import Planted

HERE = "tests/unit/test_raised.py"


class Busy(Exception):
    pass


def caught(effect: Callable[[], object]) -> BaseException:
    try:
        effect()
    except BaseException as error:  # noqa: BLE001 - as the worker does
        return error
    raise AssertionError


def module(file: Path, name: str, source: str) -> Any:
    made = types.ModuleType(name)
    exec(compile(source, str(file), "exec"), made.__dict__)
    return made


def line_of(words: str) -> int:
    return 1 + next(n for n, line in enumerate(Path(__file__).read_text().splitlines()) if line.strip().startswith(words))


def test_the_class_and_the_line_of_the_user_s_own_code_are_told(planted: Planted) -> None:
    """S18: the text of the exception stays where it was."""

    def effect() -> None:
        raise Busy(planted.payload)

    told = looked_at(caught(effect))
    assert told == Raised("tests.unit.test_raised.Busy", f"{HERE}:{line_of('raise Busy(planted')}")


def test_what_a_library_raises_is_placed_where_it_was_called(tmp_path: Path) -> None:
    """Python's own and installed packages are passed over; the nearest line of the user's own stays."""
    client = module(tmp_path / "site-packages/client/api.py", "client.api", "def call(then): then()")

    def effect() -> None:
        json.loads("{")

    told = looked_at(caught(lambda: client.call(effect)))
    assert told == Raised("json.decoder.JSONDecodeError", f"{HERE}:{line_of('json.loads(')}")
    installed = module(tmp_path / "site-packages/acme/effects.py", "acme.effects", "def push(call):\n\n call(lambda: 1 / 0)")
    told = looked_at(caught(lambda: installed.push(client.call)))
    assert told.place.startswith(HERE), "this test's own frame is the only one that is not installed"


def test_a_user_s_package_that_is_installed_is_still_told_from_the_libraries_that_it_calls(tmp_path: Path) -> None:
    client = module(tmp_path / "site-packages/client/api.py", "client.api", "def call():\n raise ValueError")
    source = "def push(call):\n\n call()"
    installed = module(tmp_path / "site-packages/acme/effects.py", "acme.effects", source)
    error = caught(lambda: installed.push(client.call))
    trace = error.__traceback__
    assert trace is not None
    while trace.tb_frame.f_globals["__name__"] != "acme.effects":  # as it is where nothing of this test is on the road
        assert trace.tb_next is not None
        trace = trace.tb_next
    assert looked_at(error.with_traceback(trace)) == Raised("ValueError", "acme/effects.py:3")


def test_a_file_whose_module_has_another_name_is_told_by_its_bare_name(tmp_path: Path) -> None:
    """Never an absolute path."""
    script = module(tmp_path / "shop.py", "__main__", "def push():\n raise ValueError")
    assert looked_at(caught(script.push)).place == "shop.py:2"
    package = module(tmp_path / "acme/__init__.py", "acme", "def push():\n raise ValueError")
    assert looked_at(caught(package.push)).place == "acme/__init__.py:2"


def test_a_class_of_a_function_and_one_of_python_are_named_plainly() -> None:
    class Local(Exception):
        pass

    named = "tests.unit.test_raised.test_a_class_of_a_function_and_one_of_python_are_named_plainly.Local"
    assert looked_at(Local()) == Raised(named, "")
    assert looked_at(KeyError()) == Raised("KeyError", "")


@pytest.mark.parametrize("name", ["card 4111", "a\x1b[2J", "a\nb", "Überlast", "", "x" * 500])
def test_an_odd_name_is_replaced_and_a_long_one_cut(name: str) -> None:
    """S18: what a class is called may have been made of data."""
    told = looked_at(type(name, (Exception,), {"__module__": name})())
    assert PLAIN.fullmatch(told.error_class)
    assert len(told.error_class) <= LONGEST
    if len(name) < LONGEST:
        assert told.error_class == "_._"
    place = place_name(["acme", f"{name}.py"], 7)
    assert PLAIN.fullmatch(place)
    assert place.endswith(":7")
    assert len(place) <= LONGEST
    assert class_name(None, 5) == "_._"


class Hidden(type):
    armed = False  # other tests look at every class of exceptions that there is

    def __getattribute__(cls, name: str) -> Any:
        if name == "__module__" and Hidden.armed:
            raise SystemExit(3)
        return super().__getattribute__(name)


class Unlooked(BaseException, metaclass=Hidden):  # no Exception: the walk through its subclasses would meet it
    @property
    def __traceback__(self) -> Any:  # type: ignore[override]
        raise KeyboardInterrupt


def test_an_exception_that_cannot_be_looked_at_is_answered_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """S2, L2."""
    monkeypatch.setattr(Hidden, "armed", True)

    def effect() -> None:
        raise Unlooked

    error = caught(effect)
    told = looked_at(error)
    assert told == Raised("", f"{HERE}:{line_of('raise Unlooked')}")
    assert told.detail == {"place": told.place}
    answered = raised(Errors(), 1, 1, error)
    assert (answered.reason, answered.raised) == ("unclassified_exception", told)


def test_every_answer_that_was_raised_has_it_and_our_own_exception_has_none() -> None:
    """A wrong answer was returned, not raised."""
    for error in (Busy(), TimeoutError(), SystemExit(3)):
        assert raised(Errors(temporary=(Busy,)), 1, 1, error).raised == looked_at(error)
    assert raised(Errors(), 1, 1, WrongAnswer()).raised is None
