"""Settings: what is read from where, and that one error names every wrong value without printing one (S18)."""

from datetime import timedelta
from pathlib import Path

import pytest

from counterfoil.core.effect import Effect
from counterfoil.settings import Settings, SettingsError, load_operations, read_settings, unknown_variables
from counterfoil.spellings import duration
from examples.sync_customer import sync_customer
from examples.upsert_projection import upsert_projection

SECRET = "hunter2-cleartext"
GOOD = {
    "LEDGER": "books",
    "OPERATIONS": "acme.operations:OPERATIONS",
    "DATABASE": f"postgres://app:{SECRET}@db.example/books",
    "BROKERS": "one:9092,two:9092",
}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty working folder and no variables of ours."""
    for name in list(__import__("os").environ):
        if name.startswith("COUNTERFOIL_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def given(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    for name, value in {**GOOD, **variables}.items():
        monkeypatch.setenv(f"COUNTERFOIL_{name}", value)


def wrong(**kinds: str) -> dict[str, str]:
    with pytest.raises(SettingsError) as caught:
        read_settings()
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return dict(caught.value.wrong)


def test_variables_alone_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch)
    settings = read_settings()
    assert (settings.ledger, settings.brokers, settings.registry) == ("books", "one:9092,two:9092", None)
    assert settings.lease == timedelta(seconds=30)


def test_a_types_rules_are_compiled_with_what_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """S10: relay, worker and callers ask here, so they agree."""
    given(monkeypatch, SEND_GRACE="7s", IN_LEDGER_TIME="90s", REVIEW_WITHIN="3d")
    rules, outside = read_settings().rules_of(upsert_projection), read_settings().rules_of(sync_customer)
    assert (rules.send_grace, rules.timeout, rules.review_within) == (
        timedelta(seconds=7),
        timedelta(seconds=90),
        timedelta(days=3),
    )
    assert isinstance(sync_customer.effect, Effect)
    assert outside.timeout == sync_customer.effect.timeout + timedelta(seconds=7)


def test_a_variable_wins_over_the_file_in_the_working_folder(monkeypatch: pytest.MonkeyPatch, alone: Path) -> None:
    (alone / "counterfoil.toml").write_text('lease = "40s"\nbatch = 7\n')
    given(monkeypatch, LEASE="50")
    assert (read_settings().lease, read_settings().batch) == (timedelta(seconds=50), 7)


def test_a_named_file_wins_over_the_one_in_the_working_folder(monkeypatch: pytest.MonkeyPatch, alone: Path) -> None:
    (alone / "counterfoil.toml").write_text("batch = 7\n")
    (alone / "other.toml").write_text("batch = 8\n")
    given(monkeypatch, FILE=str(alone / "other.toml"))
    assert read_settings().batch == 8
    assert read_settings(alone / "counterfoil.toml").batch == 7


def test_every_wrong_value_is_named_in_one_error_and_none_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """S18."""
    given(
        monkeypatch,
        LEDGER=f"Bad {SECRET}",
        DATABASE=f"mysql://app:{SECRET}@db/books",
        LEASE=f"{SECRET}s",
        BATCH=SECRET,
        GROUP_PROTOCOL=SECRET,
        KAFKA=SECRET,
        OPERATIONS=SECRET,
    )
    assert set(wrong()) == {"ledger", "database", "lease", "batch", "group_protocol", "kafka", "operations"}


def test_missing_settings_are_named_with_their_variable() -> None:
    found = wrong()
    assert set(found) == {"ledger", "operations", "database", "brokers"}
    assert "COUNTERFOIL_DATABASE" in found["database"]


def test_a_misspelt_name_in_the_file_is_an_error(monkeypatch: pytest.MonkeyPatch, alone: Path) -> None:
    (alone / "counterfoil.toml").write_text(f'leese = "{SECRET}"\n')
    given(monkeypatch)
    assert set(wrong()) == {"leese"}


def test_a_misspelt_variable_is_listed_for_check(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, LEESE="1", FAILPOINTS="x=kill")
    assert unknown_variables() == ["COUNTERFOIL_LEESE"]


@pytest.mark.parametrize("text", [f'ledger = "{SECRET}\n', f"{SECRET}", '\x00 = "x"'])
def test_a_file_that_is_not_toml_is_named_and_not_quoted(monkeypatch: pytest.MonkeyPatch, alone: Path, text: str) -> None:
    """S18."""
    (alone / "counterfoil.toml").write_text(text)
    given(monkeypatch)
    assert set(wrong()) == {"counterfoil.toml"}


def test_a_named_file_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, FILE="nowhere.toml")
    assert wrong() == {"nowhere.toml": "cannot be read"}


@pytest.mark.parametrize("spelling", ["postgresql", "postgres", "postgresql+psycopg"])
def test_every_spelling_of_the_database_means_psycopg_3(monkeypatch: pytest.MonkeyPatch, spelling: str) -> None:
    given(monkeypatch, DATABASE=f"{spelling}://app:{SECRET}@db/books")
    assert read_settings().database == f"postgresql+psycopg://app:{SECRET}@db/books"


@pytest.mark.parametrize("database", ["postgresql+asyncpg://db/books", "sqlite:///x", "books", ""])
def test_another_database_is_refused(monkeypatch: pytest.MonkeyPatch, database: str) -> None:
    given(monkeypatch, DATABASE=database)
    assert set(wrong()) == {"database"}


def test_the_embedded_broker_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, BROKERS="embedded")
    assert set(wrong()) == {"brokers"}


@pytest.mark.parametrize(
    "brokers",
    ["localhost", "one:9092,two", "one:", ":9092", "one:0", "one:70000", "one:9092,", "one two:9092", "::1", "one:9 b"],
)
def test_a_broker_without_a_port_is_refused_before_anything_is_started(monkeypatch: pytest.MonkeyPatch, brokers: str) -> None:
    given(monkeypatch, BROKERS=brokers)
    assert "each needs its port" in wrong()["brokers"]


@pytest.mark.parametrize("brokers", ["one:9092, two:9093", "[::1]:9092", "SASL_SSL://kafka.example:9094", "10.0.0.1:9092"])
def test_every_spelling_of_brokers_that_the_client_knows_is_taken(monkeypatch: pytest.MonkeyPatch, brokers: str) -> None:
    given(monkeypatch, BROKERS=brokers)
    assert read_settings().brokers == brokers


def test_a_list_of_brokers_is_told_that_one_text_is_meant(monkeypatch: pytest.MonkeyPatch, alone: Path) -> None:
    given(monkeypatch)
    monkeypatch.delenv("COUNTERFOIL_BROKERS")
    (alone / "counterfoil.toml").write_text('brokers = ["one:9092"]\n')
    assert wrong()["brokers"].startswith("one text of host:port")


def test_what_is_allowed_is_said_in_words_and_never_as_a_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, LEDGER="Books", OPERATIONS="shop.OPERATIONS", BROKERS="localhost")
    found = wrong()
    assert "40 lower-case letters" in found["ledger"]
    assert "like shop:OPERATIONS" in found["operations"]
    assert not [said for said in found.values() if "pattern" in said or "[a-z]" in said or "\\w" in said]


def test_repr_withholds_whatever_may_hold_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """S18."""
    given(monkeypatch, REGISTRY=f"http://u:{SECRET}@registry", KAFKA=f'{{"sasl.password": "{SECRET}"}}')
    settings = read_settings()
    assert settings.kafka == {"sasl.password": SECRET}
    for text in (repr(settings), str(settings), f"{settings}", f"{[settings]}"):
        assert SECRET not in text


def test_settings_cannot_be_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch)
    with pytest.raises(ValueError, match="frozen"):
        read_settings().ledger = "other"


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"RELAY_POLL_MIN": "2s"}, "relay_poll_min"),
        ({"DEAD_LETTERS_KEPT": "1d"}, "dead_letters_kept"),
        ({"SEND_GRACE": "30s"}, "send_grace"),
        ({"PUBLISHED_KEPT": "1h"}, "published_kept"),
    ],
)
def test_values_that_contradict_each_other_are_refused(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], named: str
) -> None:
    given(monkeypatch, **variables)
    assert named in wrong()["together"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5ms", 0.005), ("30s", 30), ("2m", 120), ("1h", 3600), ("7d", 604800), ("1.5s", 1.5), ("30", 30), (30, 30)],
)
def test_a_duration_is_seconds_or_has_its_unit(text: object, seconds: float) -> None:
    assert duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "s", "-1s", "1w", "1 s s", "1e9d", True, None, float("nan"), float("inf"), -1, "9" * 30])
def test_anything_else_is_no_duration(text: object) -> None:
    with pytest.raises(ValueError, match="a duration is"):
        duration(text)


def test_zero_is_refused_where_a_duration_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, LEASE="0")
    assert set(wrong()) == {"lease"}


def test_every_setting_has_a_value_or_is_required() -> None:
    required = {name for name, field in Settings.model_fields.items() if field.is_required()}
    assert required == {"ledger", "operations", "database", "brokers"}


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (None, "there is no module acme_ops"),
        ("import nowhere_at_all", "imports nowhere_at_all"),
        (f"raise RuntimeError('{SECRET}')", "raised RuntimeError"),
        (f"raise SystemExit('{SECRET}')", "raised SystemExit"),
        ("x = 1", "has no OPERATIONS"),
        ("OPERATIONS = 1", "is not an Operations"),
        ("from counterfoil import DeclarationError; raise DeclarationError('sync', 'owner is empty')", "owner is empty"),
    ],
)
def test_operations_that_cannot_be_loaded_are_told_without_an_exceptions_text(
    alone: Path, monkeypatch: pytest.MonkeyPatch, module: str | None, said: str
) -> None:
    """S18."""
    monkeypatch.syspath_prepend(str(alone))
    monkeypatch.delitem(__import__("sys").modules, "acme_ops", raising=False)
    if module is not None:
        (alone / "acme_ops.py").write_text(module)
    with pytest.raises(SettingsError) as caught:
        load_operations("acme_ops:OPERATIONS")
    assert said in str(caught.value)
    assert SECRET not in str(caught.value)
