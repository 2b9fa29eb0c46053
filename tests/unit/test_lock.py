"""registry.lock: ids that are never given twice, and a contract that is the one it stands for, or refused."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from counterfoil import RECEIPT, InLedger, Operations, OperationType, Reason, Refused, Unordered
from counterfoil.core.errors import Undecodable
from counterfoil.schemas.contract import contract_of
from counterfoil.schemas.contracts import Contracts
from counterfoil.schemas.lock import RegistryLock, ensure_lock, find_lock, read_lock, write_lock
from tests.support.contracts import definition, record


@dataclass(frozen=True)
class Note:
    id: str


def note_type(folder: Path, name: str = "take_note", schema: dict[str, Any] | None = None) -> OperationType[Note]:
    file = folder / f"{name}.avsc"
    file.write_bytes(orjson.dumps(schema or record(name.title().replace("_", ""), id="string")))
    return OperationType[Note](
        name=name,
        owner="team",
        payload=Note,
        contract=file,
        order=Unordered(identity=lambda note: note.id),
        effect=InLedger(lambda connection, note, attempt: None),
        proof=RECEIPT,
    )


def refusal(call: Any, *given: Any, **named: Any) -> Refused:
    with pytest.raises(Refused) as refused:
        call(*given, **named)
    return refused.value


def test_init_writes_the_types_subjects_and_the_system_s_own(tmp_path: Path) -> None:
    operations = Operations(note_type(tmp_path), note_type(tmp_path, "other"))
    [path] = ensure_lock(operations)
    assert path == tmp_path / "registry.lock"
    lock = read_lock(path)
    assert {name: each.id for name, each in lock.entries.items()} == {
        "acme.Other": 1,
        "acme.TakeNote": 2,
        "counterfoil.StateRecord": 3,
    }
    before = path.read_bytes()
    ensure_lock(operations)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_an_id_is_never_given_twice_not_even_after_its_subject_is_gone(tmp_path: Path) -> None:
    [path] = ensure_lock(Operations(note_type(tmp_path)))
    lock = read_lock(path)
    gone = RegistryLock({name: each for name, each in lock.entries.items() if name != "acme.TakeNote"}, lock.next_id)
    write_lock(gone, path)
    ensure_lock(Operations(note_type(tmp_path, "other")))
    assert read_lock(path).entries["acme.Other"].id == 3


def test_a_contract_that_changed_is_refused_until_it_is_renewed(tmp_path: Path) -> None:
    [path] = ensure_lock(Operations(note_type(tmp_path)))
    schema = record("TakeNote", id="string")
    schema["fields"].append({"name": "more", "type": "int", "default": 1})
    changed = note_type(tmp_path, schema=schema)
    error = refusal(ensure_lock, Operations(changed))
    assert (error.reason, error.subject) == (Reason.CONTRACT_MISMATCH, "acme.TakeNote")
    assert "Register the new contract" in str(error)
    ensure_lock(Operations(changed), renew=True)
    entry = read_lock(path).entries["acme.TakeNote"]
    assert (entry.version, entry.id, entry.earlier) == (2, 3, (1,))


def test_an_older_version_is_known_but_not_read(tmp_path: Path) -> None:
    made = definition(record("Note", id="string"))
    wider = record("Note", id="string")
    wider["fields"].append({"name": "more", "type": "int", "default": 1})
    from counterfoil.schemas.contract import Contract

    lock = RegistryLock().with_local(made)
    old = Contract(Note, made, lock)
    newer = Contract(Note, definition(wider), lock.with_local(definition(wider), renew=True))
    with pytest.raises(Undecodable) as error:
        newer.decode(old.encode(Note("1")))
    assert error.value.reason is Reason.SCHEMA_NOT_READ
    with pytest.raises(Undecodable) as error:
        old.decode(newer.encode(Note("1")))
    assert error.value.reason is Reason.UNKNOWN_SCHEMA_ID


def test_the_nearest_lock_above_the_contract_is_taken_unless_the_setting_names_one(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "contracts"
    inner.mkdir(parents=True)
    (tmp_path / "registry.lock").touch()
    assert find_lock(inner / "x.avsc") == tmp_path / "registry.lock"
    (tmp_path / "a" / "registry.lock").touch()
    assert find_lock(inner / "x.avsc") == tmp_path / "a" / "registry.lock"
    assert find_lock(inner / "x.avsc", tmp_path / "registry.lock") == tmp_path / "registry.lock"
    assert refusal(find_lock, inner / "x.avsc", tmp_path / "nowhere.lock").reason is Reason.CONTRACT_MISSING


def test_contracts_that_would_find_different_locks_are_refused(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    (first / "registry.lock").touch()
    operations = Operations(note_type(first), note_type(second, "other"))
    assert refusal(ensure_lock, operations).reason is Reason.CONTRACT_MISMATCH
    assert ensure_lock(operations, tmp_path / "shared.lock") == [tmp_path / "shared.lock"]


def test_without_a_lock_or_a_contract_the_reason_says_so(tmp_path: Path) -> None:
    declared = note_type(tmp_path)
    assert refusal(contract_of, declared).reason is Reason.CONTRACT_MISSING
    (tmp_path / "registry.lock").touch()
    error = refusal(contract_of, declared)
    assert (error.reason, error.subject) == (Reason.CONTRACT_MISSING, "acme.TakeNote")
    declared.contract.unlink()
    error = refusal(contract_of, declared)
    assert (error.reason, error.subject) == (Reason.CONTRACT_MISSING, "take_note.avsc")
    assert str(tmp_path) not in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "not toml",
        '["a.B"]\nversion = 1\nid = 1\n',
        '["a.B"]\nversion = 1\nid = "1"\nsha256 = "{0}"\n',
        '["a.B"]\nversion = 0\nid = 1\nsha256 = "{0}"\n',
        '["a.B"]\nversion = true\nid = 1\nsha256 = "{0}"\n',
        '["a.B"]\nversion = 1\nid = 1\nsha256 = "short"\n',
        '["a.B"]\nversion = 1\nid = 4294967296\nsha256 = "{0}"\n',
        '["a.B"]\nversion = 1\nid = 1\nsha256 = "{0}"\nearlier = 5\n',
        '["a.B"]\nversion = 1\nid = 1\nsha256 = "{0}"\n["a.C"]\nversion = 1\nid = 1\nsha256 = "{0}"\n',
        '["a.B"]\nversion = 1\nid = 1\nsha256 = "{0}"\nearlier = [1]\n',
        'next-id = "x"\n',
    ],
)
def test_a_lock_that_cannot_be_right_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "registry.lock"
    path.write_text(text.replace("{0}", "a" * 64))
    assert refusal(read_lock, path).reason is Reason.CONTRACT_MISMATCH


def test_contracts_are_compiled_once_and_share_the_lock(tmp_path: Path) -> None:
    operations = Operations(note_type(tmp_path), note_type(tmp_path, "other"))
    ensure_lock(operations)
    contracts = Contracts(operations)
    codec = contracts.of("take_note")
    assert codec is contracts.of("take_note")
    assert codec.decode(codec.encode(Note("1"))) == Note("1")
    assert (codec.subject, codec.version, codec.schema_id) == ("acme.TakeNote", 1, 2)
    with pytest.raises(Undecodable) as error:
        contracts.of("nothing")
    assert error.value.reason is Reason.UNKNOWN_TYPE
