"""The script behind `make cases` finds a case without a test, a test that is not there, and a docstring that names no case."""

from __future__ import annotations

import pytest

from tests.support.cases import CASES, Unreadable, filled, problems, read

TEST = "tests/unit/test_x.py::test_one"
LISTED = "".join(f"{case}: words | {TEST}\n" for case in CASES)
SAYS = {TEST: f"{', '.join(CASES)}."}


def test_a_list_with_a_test_for_each_case_is_complete() -> None:
    """Nothing to say about it."""
    assert list(problems(read(LISTED), {TEST}, SAYS)) == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (LISTED.replace(f"D05: words | {TEST}\n", ""), "D05: not in tests/cases.txt"),
        (LISTED.replace(f"D05: words | {TEST}", "D05: words |"), "D05: no test"),
        (LISTED.replace(f"D05: words | {TEST}", "D05: words | tests/y.py::two"), "D05: pytest does not collect tests/y.py::two"),
    ],
)
def test_a_case_without_a_test_is_named(text: str, sentence: str) -> None:
    """A missing line, an empty one, and a test that pytest does not know."""
    assert list(problems(read(text), {TEST}, SAYS)) == [sentence]


def test_a_test_must_name_its_case_in_its_docstring() -> None:
    """D5 is not D05, and D050 neither."""
    says = {TEST: SAYS[TEST].replace("D05", "D5, D050")}
    assert list(problems(read(LISTED), {TEST}, says)) == [f"D05: the docstring of {TEST} does not name it"]


@pytest.mark.parametrize("line", ["D05 words | t", "words", "D05: one | t\nD05: two | t"])
def test_a_line_that_is_not_of_the_form_is_refused(line: str) -> None:
    """With its place in the file."""
    with pytest.raises(Unreadable, match=r"cases\.txt:\d"):
        read(line)


def test_the_list_is_filled_from_docstrings_without_losing_a_line() -> None:
    """Comments and unknown tests stay; a second run changes nothing."""
    text = "# comment\nD05: words | tests/a.py::kept\nD07: more |\n"
    once = filled(text, {TEST: "What D05 says.", "tests/b.py::test_two": "D070"})
    assert once == f"# comment\nD05: words | tests/a.py::kept {TEST}\nD07: more |\n"
    assert filled(once, {TEST: "What D05 says."}) == once
