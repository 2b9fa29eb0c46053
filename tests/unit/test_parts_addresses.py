"""The two lines that the reader's servers write into a settings file: replaced, and nothing else touched."""

import tomllib
from pathlib import Path

import pytest

from counterfoil.parts.addresses import addressed, write
from counterfoil.parts.server import PartFailed

HERE = {"database": "postgresql://postgres@127.0.0.1:1/books", "brokers": "127.0.0.1:2"}
THERE = {"database": "postgresql://postgres@127.0.0.1:3/books", "brokers": "127.0.0.1:4"}
FILES = [
    "",
    'ledger = "first"',
    'ledger = "first"  # ours\n\n[kafka]\n"socket.keepalive.enable" = "true"\nbrokers = "no setting"\n',
    'brokers = "old:1"\nledger = "first"\ndatabase = "postgresql://old"\n',
    'database = "postgresql://old"\ndatabase = "postgresql://older"\nledger = "first"\n',
]


@pytest.mark.parametrize("text", FILES)
def test_the_second_run_replaces_what_the_first_wrote_and_keeps_every_other_line(text: str) -> None:
    once = addressed(text, HERE)
    assert {name: tomllib.loads(once)[name] for name in HERE} == HERE
    assert addressed(once, HERE) == once
    assert addressed(once, THERE) == once.replace(HERE["database"], THERE["database"]).replace(HERE["brokers"], THERE["brokers"])
    kept = [line for line in text.splitlines() if "old" not in line]
    assert [line for line in once.splitlines() if line in kept] == kept


@pytest.mark.parametrize("text", ['"database" = "x"\n', 'brokers = """\na:1\n"""\n', "ledger = first\n", 'ledger = "a\n'])
def test_a_file_that_cannot_be_written_safely_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    file = tmp_path / "counterfoil.toml"
    file.write_text(text)
    with pytest.raises(PartFailed, match=r"was left as it is: correct it, or take the lines without --write"):
        write(file, HERE)
    assert file.read_text() == text


def test_a_file_that_is_not_there_is_made(tmp_path: Path) -> None:
    write(tmp_path / "counterfoil.toml", HERE)
    assert tomllib.loads((tmp_path / "counterfoil.toml").read_text()) == HERE


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(PartFailed, match="cannot be read and written"):
        write(tmp_path / "nowhere" / "counterfoil.toml", HERE)
