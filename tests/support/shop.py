"""A user's folder with one operation type and its contract, not locked: for the command line in processes of its own."""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

MODULE = """\
from dataclasses import dataclass
from pathlib import Path
from counterfoil import Attempt, Effect, NotAtAll, Operations, OperationType, Receipt, Sink, Unordered, seconds

@dataclass(frozen=True)
class Mail:
    mail_id: str

def send(mail: Mail, attempt: Attempt) -> Receipt:
    return Receipt()

send_mail = OperationType[Mail](
    name="send_mail", owner="team-web", payload=Mail, contract=Path(__file__).parent / "send_mail.avsc",
    order=Unordered(identity=lambda m: m.mail_id),
    effect=Effect(send, Sink("mail", NotAtAll(), request_life=seconds(1), read_lag=seconds(0)), timeout=seconds(1)), proof=None,
)
OPERATIONS = Operations(send_mail)
"""
CONTRACT = {
    "type": "record",
    "name": "Mail",
    "namespace": "shop",
    "doc": "A mail.",
    "fields": [{"name": "mail_id", "type": "string", "doc": "Its id."}],
}


def write_shop(folder: Path) -> None:
    """Write `shop.py` and its contract."""
    (folder / "shop.py").write_text(MODULE)
    (folder / "send_mail.avsc").write_text(json.dumps(CONTRACT))


def load_shop(folder: Path) -> Any:
    """The module as this process imports it, to enqueue with."""
    name = f"shop_{folder.name}"
    found = importlib.util.spec_from_file_location(name, folder / "shop.py")
    assert found is not None
    assert found.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(found)  # dataclasses look their module up
    found.loader.exec_module(module)
    return module
