"""The file store on a real folder: whole files or none."""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from counterfoil.core.errors import Permanent, Temporary
from counterfoil.core.records import Absent, Asked, Digest, Found, Unknown, seconds
from counterfoil.core.sink import ByNature, Sink
from counterfoil.sinks.adapter import Adapter
from counterfoil.sinks.files import PATH_REFUSED, FileStore, Rendering, StoredFile
from tests.support.attempts import a_target, an_attempt

EXPORTS = Sink("exports", ByNature(), request_life=seconds(5), read_lag=seconds(0))


@dataclass(frozen=True)
class Report:
    text: str


def rendered(report: Report) -> Iterator[bytes]:
    yield report.text.encode()
    yield b"\n"


def a_store(root: Path, path: str = "reports/{}.csv") -> FileStore[Report]:
    return FileStore(EXPORTS, root, Rendering(rendered, path.format))


def test_the_store_is_an_adapter(tmp_path: Path) -> None:
    adapter: Adapter[Report, StoredFile] = a_store(tmp_path)
    assert adapter.sink is EXPORTS


def test_a_written_report_is_found_as_expected(tmp_path: Path) -> None:
    store, attempt, report = a_store(tmp_path), an_attempt(), Report("a,b")
    receipt = store.effect(report, attempt)
    name = f"reports/{attempt.operation_id}.csv"
    assert receipt.remote_id == name
    assert receipt.version == Digest("sha256", hashlib.sha256(b"a,b\n").digest())
    assert (tmp_path / name).read_bytes() == b"a,b\n"
    seen, expected = store.probe(a_target(report, attempt)), store.expected(report)
    assert isinstance(seen, Found)
    assert (seen.fields, seen.version, seen.asked) == (expected.fields, expected.version, Asked.RESULT_KEY)


def test_a_second_attempt_leaves_the_same_one_file(tmp_path: Path) -> None:
    store, first = a_store(tmp_path), an_attempt()
    store.effect(Report("a"), first)
    store.effect(Report("a"), an_attempt(number=2, operation=first.operation_id))
    assert [path.name for path in (tmp_path / "reports").iterdir()] == [f"{first.operation_id}.csv"]


def test_a_rendering_that_fails_half_way_publishes_nothing(tmp_path: Path) -> None:
    """D94: the half-written file never has the final name, and is removed."""

    def half(report: Report) -> Iterator[bytes]:
        yield b"half"
        raise RuntimeError

    store = FileStore(EXPORTS, tmp_path, Rendering(half, "reports/{}.csv".format))
    with pytest.raises(RuntimeError):
        store.effect(Report("a"), an_attempt())
    assert list((tmp_path / "reports").iterdir()) == []


def test_what_a_killed_attempt_left_beside_the_file_is_removed_by_the_next(tmp_path: Path) -> None:
    """D94: a temporary name is never taken for a result."""
    store, attempt = a_store(tmp_path), an_attempt(number=2)
    left = tmp_path / "reports" / f".{attempt.operation_id}.csv.1.part"
    left.parent.mkdir()
    left.write_bytes(b"ha")
    assert isinstance(store.probe(a_target(Report("a"), attempt)), Absent)
    store.effect(Report("a"), attempt)
    assert [path.name for path in left.parent.iterdir()] == [f"{attempt.operation_id}.csv"]


def test_a_file_cut_short_is_found_with_its_own_checksum(tmp_path: Path) -> None:
    """D94: right name, wrong bytes: the observation differs from what is expected."""
    store, attempt, report = a_store(tmp_path), an_attempt(), Report("a" * 100)
    store.effect(report, attempt)
    (tmp_path / f"reports/{attempt.operation_id}.csv").write_bytes(b"a" * 101)
    seen = store.probe(a_target(report, attempt))
    assert isinstance(seen, Found)
    assert seen.fields.size == 101 == store.expected(report).fields.size
    assert seen.fields.sha256 != store.expected(report).fields.sha256
    assert seen.version != store.expected(report).version


@pytest.mark.parametrize(
    "path", ["../{}.csv", "/tmp/{}.csv", "reports/../../{}.csv", "a\\{}.csv", "a\0{}", "reports/.{}.csv", ""]
)
def test_a_path_out_of_the_folder_is_refused(tmp_path: Path, path: str) -> None:
    root = tmp_path / "store"
    root.mkdir()
    store, attempt = a_store(root, path), an_attempt()
    with pytest.raises(Permanent) as refused:
        store.effect(Report("a"), attempt)
    assert refused.value.code == PATH_REFUSED in store.codes
    assert isinstance(store.probe(a_target(Report("a"), attempt)), Unknown)
    assert list(root.iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_a_link_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "store/reports").symlink_to(tmp_path / "outside")
    with pytest.raises(Permanent):
        a_store(tmp_path / "store").effect(Report("a"), an_attempt())
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_store_that_is_not_there_is_unknown_and_temporary(tmp_path: Path) -> None:
    """D79: an absent store must not make every report missing."""
    store, attempt = a_store(tmp_path / "not mounted"), an_attempt()
    assert isinstance(store.probe(a_target(Report("a"), attempt)), Unknown)
    with pytest.raises(Temporary):
        store.effect(Report("a"), attempt)
    assert not (tmp_path / "not mounted").exists()


def test_something_else_in_its_place_is_unknown(tmp_path: Path) -> None:
    store, attempt = a_store(tmp_path), an_attempt()
    place = tmp_path / f"reports/{attempt.operation_id}.csv"
    place.mkdir(parents=True)
    assert isinstance(store.probe(a_target(Report("a"), attempt)), Unknown)
    with pytest.raises(Temporary):
        store.effect(Report("a"), attempt)
    place.rmdir()
    os.symlink("/etc/hostname", place)
    assert isinstance(store.probe(a_target(Report("a"), attempt)), Unknown)
