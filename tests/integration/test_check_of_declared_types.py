"""`counterfoil.testing.check` on contracts in files: what is wrong is named before a server is asked."""

from dataclasses import dataclass
from pathlib import Path

from counterfoil import Attempt, Effect, NotAtAll, Operations, OperationType, Receipt, Sink, Unordered, seconds
from counterfoil.testing import check

RAW = Sink("raw", NotAtAll(), request_life=seconds(30), read_lag=seconds(5))
CONTRACT = """{"type": "record", "name": "Mail", "namespace": "com.example", "doc": "A mail.", "fields": [
    {"name": "mail_id", "type": "string", "doc": "Its id."}]}"""


@dataclass(frozen=True)
class Mail:
    mail_id: str


@dataclass(frozen=True)
class LongMail:
    mail_id: str
    subject: str


def send(mail: Mail, attempt: Attempt) -> Receipt:
    return Receipt()


def send_long(mail: LongMail, attempt: Attempt) -> Receipt:
    return Receipt()


def send_mail(contract: Path) -> Operations:
    return Operations(
        OperationType[Mail](
            name="send_mail",
            owner="team-web",
            payload=Mail,
            contract=contract,
            order=Unordered(lambda m: m.mail_id),
            effect=Effect(send, RAW, timeout=seconds(9)),
            proof=None,
        )
    )


def test_a_type_that_fits_its_contract_has_no_mistake(tmp_path: Path) -> None:
    (tmp_path / "mail.avsc").write_text(CONTRACT)
    assert not check(send_mail(tmp_path / "mail.avsc"))


def test_a_missing_contract_is_named_without_the_machines_path(tmp_path: Path) -> None:
    [mistake] = check(send_mail(tmp_path / "other.avsc"))
    assert mistake.type == "send_mail"
    assert "other.avsc" in mistake.rule
    assert str(tmp_path) not in str(mistake)


def test_a_field_that_the_contract_does_not_know_is_named(tmp_path: Path) -> None:
    (tmp_path / "mail.avsc").write_text(CONTRACT)
    long_mail = OperationType[LongMail](
        name="send_long_mail",
        owner="team-web",
        payload=LongMail,
        contract=tmp_path / "mail.avsc",
        order=Unordered(lambda m: m.mail_id),
        effect=Effect(send_long, RAW, timeout=seconds(9)),
        proof=None,
    )
    [mistake] = check(Operations(long_mail))
    assert mistake.type == "send_long_mail"
    assert "subject" in mistake.rule


def test_the_examples_have_no_mistake_and_their_contracts_are_locked() -> None:
    from counterfoil.schemas.contract import contract_of
    from counterfoil.schemas.lock import find_lock, read_lock
    from counterfoil.schemas.state_record import StateContract
    from examples.operations import OPERATIONS

    assert not check(OPERATIONS)
    assert {contract_of(each).subject.rpartition(".")[0] for each in OPERATIONS} == {"com.example"}
    StateContract(read_lock(find_lock(OPERATIONS.types[0].contract)))  # refused where the lock is older than the contract
