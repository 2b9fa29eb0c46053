"""`counterfoil operations`: list, show and cancel, in processes, against a real ledger. No payload is ever printed (S18)."""

import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from counterfoil import Cancelled, OperationId, Refused, cancel, enqueue, enqueue_many
from counterfoil.core.reasons import Reason
from counterfoil.core.states import State
from examples.export_report import Report, export_report
from examples.send_mail import Mail, send_mail
from examples.sync_customer import Customer, sync_customer
from examples.upsert_projection import Stock
from tests.support.ledgers import Bed, bulk_ledger
from tests.support.planted import Planted
from tests.support.processes import CommandLine
from tests.support.worked import push, push_async


@pytest.fixture
def line(command_line: CommandLine, ledger: Bed) -> CommandLine:
    """The command line with the examples as its operation types and no broker in reach."""
    command_line.settings |= {"operations": "examples.operations:OPERATIONS", "brokers": "127.0.0.1:1"}
    return command_line


def answered(line: CommandLine, *arguments: str, code: int = 0) -> Any:
    return json.loads(line.run("operations", *arguments, "--json", code=code).stdout)


def customers(ledger: Bed, planted: Planted, count: int) -> list[UUID]:
    """Operations with a planted payload and a planted key."""
    with ledger.engine.begin() as connection:
        asked = (Customer(f"{planted.key}-{n}", n, planted.payload) for n in range(count))
        return list(enqueue_many(connection, sync_customer, asked, correlation_id="order-9"))


def test_a_list_is_newest_first_and_pages_by_key(line: CommandLine, ledger: Bed, planted: Planted) -> None:
    ids = {str(one) for one in customers(ledger, planted, 7)}
    seen: list[dict[str, Any]] = []
    page = answered(line, "list", "--limit", "3")
    while True:
        seen += page["operations"]
        if page["before"] is None:
            break
        customers(ledger, Planted(payload="later", key=f"k{page['before']}"), 1)  # newer lines move nothing
        page = answered(line, "list", "--limit", "3", "--before", str(page["before"]))
    assert len(seen) == len(ids)
    assert {one["operation_id"] for one in seen} == ids
    assert [one["number"] for one in seen] == sorted((one["number"] for one in seen), reverse=True)


def test_a_list_is_narrowed_by_state_type_age_and_correlation(line: CommandLine, ledger: Bed, planted: Planted) -> None:
    customers(ledger, planted, 2)
    with ledger.engine.begin() as connection:
        report = enqueue(connection, export_report, Report("r1", "2026-11"))
        connection.execute(
            text("UPDATE counterfoil.operation SET created_at = created_at - interval '3 hours' WHERE type = 'sync_customer'")
        )

    def count(*arguments: str) -> int:
        return len(answered(line, "list", *arguments)["operations"])

    assert count() == 3
    assert count("--state", "queued") == 3
    assert count("--state", "quarantined", "--state", "confirmed") == 0
    assert count("--type", "sync_customer") == 2
    assert count("--type", "sync_customer", "--type", "export_report") == 3
    assert count("--older-than", "2h") == 2
    assert count("--newer-than", "2h") == 1
    assert count("--correlation", "order-9") == 2
    assert answered(line, "list", "--type", "export_report")["operations"][0]["operation_id"] == str(report)


def test_the_list_for_people_names_no_key_and_no_payload(line: CommandLine, ledger: Bed, planted: Planted) -> None:
    """S18: `command_line` fails the test where a planted text is printed."""
    (one,) = customers(ledger, planted, 1)
    said = line.run("operations", "list").stdout
    assert str(one) in said
    assert "sync_customer" in said
    assert "0 of 8" in said
    assert line.run("operations", "list", "--state", "confirmed").stdout == "no operation fits\n"


def test_show_tells_where_a_new_operation_stands(line: CommandLine, ledger: Bed, planted: Planted) -> None:
    (one,) = customers(ledger, planted, 1)
    told = answered(line, "show", str(one))
    assert (told["state"], told["final"], told["attempt"], told["of"]) == ("queued", False, 0, 8)
    assert told["cause"]["reason"] == "accepted"
    assert told["waiting"] == "the relay, to publish its command record"
    assert told["idempotency_key"] == f"cf1-{one.hex}-r1-g0"
    assert [row["kind"] for row in told["unpublished"]] == ["command"]
    assert told["unpublished"][0]["topic"] == f"{ledger.name}.sync_customer.commands"
    assert [entry["event"] for entry in told["log"]] == ["accepted"]
    assert told["created_at"].endswith("Z")
    said = line.run("operations", "show", str(one), "--utc").stdout
    assert "+00:00" in said
    assert "0 of 8" in said


MOVED = """
WITH n AS (SELECT number FROM counterfoil.operation WHERE operation_id = :one),
at AS (SELECT counterfoil.ledger_time() AS t),
events AS (
    INSERT INTO counterfoil.event (number, ordinal, sequence, at, kind, state, attempt, reason, detail, secret, content, chain)
    SELECT number, 2, 1, t, 'admitted', 'running', 1, 'admitted', CAST(:detail AS jsonb), 1, ''::bytea, ''::bytea FROM n, at
    UNION ALL SELECT number, 3, 2, t + interval '1 s', 'result_saved', 'succeeded', 1, 'receipt', NULL, 1, '', '' FROM n, at
),
gone AS (DELETE FROM counterfoil.outbox WHERE number = (SELECT number FROM n)),
left_ AS (
    INSERT INTO counterfoil.published (number, outbox_id, kind, partition, record_offset, at)
    SELECT number, 1, 'command', 3, 41, t - interval '1 ms' FROM n, at
),
commits AS (
    INSERT INTO counterfoil.acknowledged (topic, partition, up_to, session, at)
    SELECT :topic, 3, up_to, 9, t + up_to * interval '1 s' FROM at, unnest(ARRAY[41, 45, 50]) up_to
)
UPDATE counterfoil.state s SET state = 'succeeded', sequence = 2, events = 3, attempt = 1, tries_left = 7, outcome = 'done',
    reason = 'receipt', record_road = 'commands', record_partition = 3, record_offset = 41, remote_id = 'crm-1', result_key = 'k'
FROM n, at WHERE s.number = n.number
"""
DETAIL = '{"road": "commands", "partition": 3, "offset": 41, "session": 9, "unlisted": "never shown"}'


def test_show_derives_received_and_ack_sent_from_coordinates(line: CommandLine, ledger: Bed, planted: Planted) -> None:
    """Design 7: the first delivery writes no event of its own; its acknowledgement is the first commit above its offset."""
    (one,) = customers(ledger, Planted(payload="p", key="k"), 1)
    topic = f"{ledger.name}.sync_customer.commands"
    with ledger.engine.begin() as connection:
        connection.execute(text(MOVED), {"one": one, "topic": topic, "detail": DETAIL})
    told = answered(line, "show", str(one))
    assert (told["state"], told["remote_id"], told["result_key"]) == ("succeeded", "crm-1", "k")
    assert (told["attempt"], told["of"]) == (1, 8)
    events = [(entry["event"], entry["derived"]) for entry in told["log"]]
    assert events == [
        ("accepted", False),
        ("published", True),
        ("received", True),
        ("admitted", False),
        ("result_saved", False),
        ("ack_sent", True),
    ]
    received, acknowledged = told["log"][2], told["log"][5]
    assert received["detail"] == {"topic": topic, "partition": 3, "offset": 41, "redelivered": False}
    assert acknowledged["attempt"] == 1
    assert acknowledged["at"] > told["log"][4]["at"]
    assert told["published"][0]["topic"] == topic
    assert told["log"][3]["detail"] == {"road": "commands", "partition": 3, "offset": 41, "session": 9}


@pytest.mark.parametrize("command", ["show", "cancel"])
def test_an_operation_that_is_not_there_is_named_with_what_to_do(line: CommandLine, ledger: Bed, command: str) -> None:
    one = uuid4()
    more = ["--reason", "asked"] if command == "cancel" else []
    error = answered(line, command, str(one), *more, code=1)["error"]
    assert (error["code"], error["subject"], error["exit"]) == ("unknown_operation", str(one), 1)
    ended = line.run("operations", command, str(one), *more, code=1)
    assert ended.stdout == ""
    assert "what to do:" in ended.stderr


def test_cancel_of_what_was_never_sent_is_now(line: CommandLine, ledger: Bed, planted: Planted) -> None:
    (one,) = customers(ledger, Planted(payload="p", key="k"), 1)
    assert answered(line, "cancel", str(one), "--reason", "asked by the customer")["cancelled"] == "now"
    told = answered(line, "show", str(one))
    assert (told["state"], told["final"], told["waiting"]) == (State.NOT_APPLICABLE.value, True, "nothing: it is final")
    assert answered(line, "cancel", str(one), "--reason", "again", code=1)["cancelled"] == "too_late"
    told = ledger.rows("SELECT action, subject, reason, result, actor = session_user AS mine FROM counterfoil.act ORDER BY id")
    act = {"action": "cancel", "subject": str(one), "mine": True}
    assert told == [
        act | {"reason": "asked by the customer", "result": "now"},
        act | {"reason": "again", "result": "too_late"},
    ]


def test_a_person_cancels_what_is_quarantined_and_a_program_cannot(line: CommandLine, ledger: Bed) -> None:
    """S13."""
    (one,) = customers(ledger, Planted(payload="p", key="k"), 1)
    with ledger.engine.begin() as connection:
        connection.execute(text("UPDATE counterfoil.state SET state = 'quarantined', sequence = 1, reason = 'tries_used_up'"))
        assert cancel(connection, OperationId(one), reason="by a program") is Cancelled.ASKED
    assert answered(line, "cancel", str(one), "--reason", "the customer left")["cancelled"] == "now"
    told = answered(line, "show", str(one))
    assert (told["state"], told["log"][-1]["detail"]["why"]) == ("not_applicable", "the customer left")


DOUBTFUL = """
UPDATE counterfoil.state SET state = :state, sequence = 3, attempt = 1, outcome = 'uncertain', unresolved = true,
    doubtful_since = counterfoil.ledger_time(), doubtful_revision = 1, doubtful_generation = 0
"""


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("retry_wait", "looked up before anything is sent"),
        ("awaiting_confirmation", "once it is certain that nothing was"),
        ("manual_review", "waits for a person"),
        ("quarantined", "waits for a person"),
    ],
)
def test_a_cancel_that_is_remembered_says_what_follows_in_its_state(
    line: CommandLine, ledger: Bed, state: str, said: str
) -> None:
    (one,) = customers(ledger, Planted(payload="p", key="k"), 1)
    with ledger.engine.begin() as connection:
        connection.execute(text(DOUBTFUL), {"state": state})
    told = answered(line, "cancel", str(one), "--reason", "the customer left")
    assert (told["cancelled"], said in told["what"]) == ("asked", True)


def test_show_says_by_type_what_comes_next_after_a_doubt(line: CommandLine, ledger: Bed) -> None:
    """The type's declaration decides; where there is none, nothing is guessed."""
    with ledger.engine.begin() as connection:
        ids = [enqueue(connection, each, Stock("a", 1, 5)) for each in (push_async, push)]
        ids.append(enqueue(connection, send_mail, Mail("m1", "a@example.org", "s")))
        connection.execute(text(DOUBTFUL), {"state": "awaiting_confirmation"})

    def said(operations: str) -> list[str]:
        line.settings["operations"] = operations
        return [answered(line, "show", str(one))["waiting"] for one in ids]

    sent_again, probed, undeclared = said("tests.support.worked:OPERATIONS")
    assert sent_again.startswith("proof: it is sent again under the same key at 20")
    assert probed.startswith("a probe of its sink")
    assert "its type is not declared here" in undeclared
    assert said("examples.operations:OPERATIONS")[2].startswith("a person, who must look at the sink")
    assert "its type is not declared here" in said("tests.support.nowhere:OPERATIONS")[0]


def test_a_text_that_a_terminal_would_obey_is_refused_at_the_door(line: CommandLine, ledger: Bed) -> None:
    (one,) = customers(ledger, Planted(payload="p", key="k"), 1)
    assert answered(line, "cancel", str(one), "--reason", "a\x1b[2J", code=1)["error"]["code"] == "forbidden_text"
    for text_ in ("a\x1b[2J", "a\x9bb", "a\nb"):
        with ledger.engine.begin() as connection, pytest.raises(Refused) as refused:
            enqueue(connection, sync_customer, Customer("c", 1, "x"), correlation_id=text_)
        assert (refused.value.reason, refused.value.path) == (Reason.FORBIDDEN_TEXT, "correlation_id")


def test_cancel_needs_a_reason(line: CommandLine, ledger: Bed, planted: Planted) -> None:
    (one,) = customers(ledger, planted, 1)
    line.run("operations", "cancel", str(one), code=2)
    for empty in ("", "  "):
        said = " ".join(line.run("operations", "cancel", str(one), "--reason", empty, code=2).stderr.replace("│", " ").split())
        assert "An act needs a reason, for whoever reads it later. Say who asked for it and why" in said
    assert ledger.one("SELECT state FROM counterfoil.state") == "queued"


@pytest.mark.parametrize(
    "arguments", [("show", "nothing"), ("list", "--state", "done"), ("list", "--older-than", "soon"), ("list", "--limit", "0")]
)
def test_a_command_line_that_cannot_be_used_ends_with_2(line: CommandLine, arguments: tuple[str, ...]) -> None:
    line.run("operations", *arguments, code=2)


def test_a_database_that_is_not_there_ends_with_3_and_no_address(line: CommandLine, planted: Planted) -> None:
    """S18."""
    nowhere = f"postgresql://someone:{planted.password}@127.0.0.1:1/nowhere"
    ended = line.run("operations", "list", code=3, database=nowhere)
    assert "127.0.0.1" not in ended.stderr
    assert "someone" not in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_database_without_a_ledger_is_told_to_init(line: CommandLine, ledger: Bed) -> None:
    line.settings["database"] = ledger.server.create_database("empty")
    try:
        assert answered(line, "list", code=1)["error"]["code"] == "ledger_not_initialised"
    finally:
        ledger.server.drop_database("empty")


def test_the_list_reads_no_more_of_a_large_ledger_than_its_page(ledger: Bed) -> None:
    from counterfoil.ledger.statements import reading as statements

    bulk_ledger(ledger.engine, 20_000)
    plain = statements.lines().limit(51)
    queued = statements.in_states(statements.lines(), [State.QUEUED]).limit(51)
    for asked in (plain, queued):
        with ledger.engine.begin() as connection:
            words = str(asked.compile(connection, compile_kwargs={"literal_binds": True}))
            plan = connection.exec_driver_sql(f"EXPLAIN {words}").scalars().all()
        assert not any("Seq Scan" in step for step in plan), plan
