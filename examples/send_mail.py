"""A mail is sent, and nobody can ask the mail server afterwards: a lost answer goes to a person."""

from dataclasses import dataclass
from pathlib import Path

from counterfoil import Attempt, Effect, NotAtAll, OperationType, Receipt, Sink, Unordered, minutes, seconds
from examples.clients import smtp

MAIL = Sink("mail", NotAtAll(), request_life=minutes(10), read_lag=seconds(0))


@dataclass(frozen=True)
class Mail:
    mail_id: str
    to: str
    template: str


def send(mail: Mail, attempt: Attempt) -> Receipt:
    return Receipt(remote_id=smtp.send(mail.to, mail.template, message_id=attempt.key, timeout=attempt.timeout))


send_mail = OperationType[Mail](
    name="send_mail",
    owner="team-web",
    payload=Mail,
    contract=Path(__file__).parent / "contracts/send_mail.avsc",
    order=Unordered(identity=lambda m: m.mail_id),
    effect=Effect(send, MAIL, timeout=seconds(30)),
    proof=None,  # nobody can ask a mail server: succeeded is the end, a lost answer goes to a person
)
