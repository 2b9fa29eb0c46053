"""What an installation chooses: one frozen object, read from COUNTERFOIL_* variables over a TOML file, checked whole at start.

It lists every wrong value by name in one error. It must never print a value: one of them is a password.
Every duration is a `timedelta`; in variables and in the file it is a number of seconds, or a number with its unit
("5ms", "30s", "2m", "1h", "7d").
"""

import importlib
import os
import re
import sys
import tomllib
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from counterfoil import spellings
from counterfoil.core.errors import CounterfoilError, DeclarationError
from counterfoil.core.standing import Rules

if TYPE_CHECKING:
    from counterfoil.core.operation_type import Operations, OperationType

DEFAULT_FILE = "counterfoil.toml"
FILE_VARIABLE = "COUNTERFOIL_FILE"
PREFIX = "COUNTERFOIL_"


class SettingsError(CounterfoilError):
    """The settings cannot be used; `wrong` names each bad one with what is expected there, and never its value."""

    def __init__(self, *wrong: tuple[str, str]) -> None:
        self.wrong = wrong
        lines = "".join(f"\n  {name}: {what}" for name, what in wrong)
        super().__init__(f"{len(wrong)} of the settings cannot be used:{lines}")


Duration = Annotated[timedelta, BeforeValidator(spellings.duration), Field(gt=timedelta(0))]
Table = Annotated[dict[str, str], NoDecode, BeforeValidator(spellings.table)]
Words = Annotated[tuple[str, ...], NoDecode, BeforeValidator(spellings.words)]
Database = Annotated[str, BeforeValidator(spellings.database), Field(repr=False)]
Whole = Annotated[int, Field(ge=1)]


class Settings(BaseSettings):
    """All settings of an installation; `repr` withholds what may hold a secret. Each part takes the few values it needs."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid", hide_input_in_errors=True
    )
    withheld: ClassVar[frozenset[str]] = frozenset({"database", "registry", "kafka"})

    # -- the installation
    ledger: Annotated[str, BeforeValidator(spellings.ledger)]
    #: The ledger's name: part of every operation_id, topic and key. Written into the database by `init`, never changed.
    operations: Annotated[str, BeforeValidator(spellings.operations)]  #: "module:NAME" of the declared `Operations`
    database: Database  #: URL of the ledger's database (may hold a password)
    brokers: Annotated[str, BeforeValidator(spellings.brokers)]  #: "host:port,host:port"
    embedded: bool = False  #: the brokers are librdkafka's mock cluster (demo): topic settings cannot be seen, nothing compacts
    kafka: Annotated[Table, Field(repr=False)] = {}  #: further client properties by librdkafka's names (sasl.*, ssl.*)
    registry: Annotated[str | None, Field(repr=False)] = None
    #: URL of the schema registry; running processes never ask it, ids come from registry.lock.
    registry_lock: Path | None = None  #: None: the nearest registry.lock above each contract
    database_pool: Whole = 4  #: connections that one process keeps

    # -- topics
    topic_partitions: Whole = 12  #: of each new topic
    topic_replication: Whole = 3  #: of each new topic; at most one copy a broker
    topic_message_bytes: Annotated[int, Field(ge=1024)] = 1_048_588  #: max.message.bytes of the command topics
    dead_letters_kept: Duration = timedelta(days=30)  #: retention of the dead-letter topic; at least `review_within`
    commands_kept: Duration = timedelta(days=14)  #: retention of command and retry topics
    topics_verified_every: Duration = timedelta(seconds=60)  #: by the relay

    # -- relay
    relay_batch: Annotated[int, Field(ge=1, le=50_000)] = 5_000  #: rows of one pass over a shard set
    relay_lease: Duration = timedelta(seconds=10)  #: of the shards; renewed at a third of it
    relay_delivery_timeout: Duration = timedelta(seconds=30)  #: past it a send is unknown and made again
    relay_poll_min: Duration = timedelta(milliseconds=5)  #: shortest wait between two looks at the outbox
    relay_poll_max: Duration = timedelta(milliseconds=500)  #: longest wait of an idle relay
    relay_floor_every: Duration = timedelta(seconds=5)  #: how often a shard is read from zero again (late commits)
    published_kept: Duration = timedelta(days=30)  #: how long "did it leave?" can be answered
    partitions_ahead: Duration = timedelta(days=7)  #: how far ahead time partitions are made; `check` says when not

    # -- worker
    lease: Duration = timedelta(seconds=30)  #: of a worker's session; its heartbeat is a third of it
    batch: Annotated[int, Field(ge=1, le=10_000)] = 1_000  #: records of one batch
    consume_wait: Duration = timedelta(milliseconds=5)  #: longest wait for a full batch: the floor of latency
    effect_concurrency: Whole = 64  #: effects in flight in one worker
    thread_pool: Whole = 16  #: threads for effects that are not async
    lost_threads: Whole = 8  #: threads past their timeout at which the worker leaves
    send_grace: Duration = timedelta(seconds=5)  #: longest stall between the last check and the first byte that is promised for
    in_ledger_time: Duration = timedelta(seconds=60)  #: maximum run time of an attempt inside the ledger's transaction
    shutdown_grace: Duration = timedelta(seconds=20)  #: for effects in flight at SIGTERM and on revoke
    progress_within: Duration = timedelta(seconds=120)  #: lag without progress for longer: the worker leaves
    stop_after: Duration = timedelta(seconds=60)  #: database or broker lost for longer: the process ends, non-zero
    group_protocol: Literal["classic", "consumer"] = "classic"  #: classic = cooperative-sticky; consumer = KIP-848
    datadir: Path | None = None  #: Faust's own data folder; None: a temporary one

    breaker_after: Whole = 10  #: operations that fail in a row, as at a sink that is down, before nothing more is sent to it
    breaker_wait: Duration = timedelta(seconds=5)  #: before the first probe of such a sink; doubled with each, up to a minute

    # -- due
    due_every: Duration = timedelta(seconds=1)  #: how often the sweepers look
    due_batch: Annotated[int, Field(ge=1, le=10_000)] = 500  #: operations that one pass of a sweeper moves
    resend_after: Duration = timedelta(seconds=60)  #: a command that no worker took is written again
    hold_for: Duration = timedelta(days=7)  #: deadline of a held record
    review_within: Duration = timedelta(days=14)  #: by when a person looks at what is on the exceptions list

    # -- log
    log_operations: bool = True  #: False: no line per operation, only those about processes and alarms
    own_loggers: Words = ()  #: loggers of your own code, by name: their messages are printed as they are, all others withheld

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Variables win over the file, which `read_settings` hands in."""
        return env_settings, init_settings

    @model_validator(mode="after")
    def _together(self) -> "Settings":
        if self.relay_poll_min > self.relay_poll_max:
            raise ValueError("relay_poll_min must not be longer than relay_poll_max")
        if self.dead_letters_kept < self.review_within:
            raise ValueError("dead_letters_kept must not be shorter than review_within")
        if self.send_grace >= self.lease:
            raise ValueError("send_grace must be shorter than lease")
        if self.published_kept < timedelta(days=1):
            raise ValueError("published_kept is at least one day, the size of its partitions")
        return self

    def rules_of(self, declared: "OperationType[Any]") -> Rules:
        """What a declaration means here: the same for every process, or they would differ in when a repeat is harmless."""
        return Rules.of(
            declared, send_grace=self.send_grace, in_ledger_time=self.in_ledger_time, review_within=self.review_within
        )

    def __repr_args__(self) -> Any:
        return [(name, "withheld" if name in self.withheld else getattr(self, name)) for name in type(self).model_fields]

    __str__ = BaseSettings.__repr__


def settings_file(file: Path | None = None) -> Path | None:
    """The TOML file that is read: the one given, else COUNTERFOIL_FILE, else counterfoil.toml here if there is one."""
    if file is not None:
        return file
    if named := os.environ.get(FILE_VARIABLE):
        return Path(named)
    default = Path(DEFAULT_FILE)
    return default if default.is_file() else None


def _from_file(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError:
        wrong = "cannot be read"
    except UnicodeDecodeError:
        wrong = "is not UTF-8 text"
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line \d+, column \d+", str(error))
        wrong = f"is not valid TOML ({place[0] if place else 'at its end'})"
    raise SettingsError((str(file), wrong))


def _sentence(error: Any) -> tuple[str, str]:
    """Name and expectation out of one of pydantic's errors; its texts hold the expectation only, inputs are left out."""
    name = ".".join(str(part) for part in error["loc"][:2]) or "together"
    match error["type"]:
        case "missing":
            return name, f"is missing: set {PREFIX}{name.upper()} or write it into {DEFAULT_FILE}"
        case "extra_forbidden":
            return name, "there is no setting of this name"
        case _:
            text = str(error["msg"]).removeprefix("Value error, ")
            return name, text[:1].lower() + text[1:]


def read_settings(file: Path | None = None) -> Settings:
    """Read COUNTERFOIL_* over the TOML file (`file`, else COUNTERFOIL_FILE, else ./counterfoil.toml).

    Raises SettingsError, once, with every wrong value by name.
    """
    written = _from_file(settings_file(file))
    try:
        return Settings(**written)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
    raise SettingsError(*sorted(_sentence(one) for one in found))


def unknown_variables() -> list[str]:
    """COUNTERFOIL_* variables that are no setting: a misspelling, or (in Kubernetes) those that a Service of this name sets."""
    known = {PREFIX + name.upper() for name in Settings.model_fields} | {FILE_VARIABLE}
    also = (f"{PREFIX}FAILPOINTS",)
    return sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known and not name.startswith(also))


def load_operations(operations: str) -> "Operations":
    """Import "module:NAME" with the working folder on the path. Raises SettingsError, without any exception's text."""
    module_name, _, name = operations.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module_name), name, None)
    except DeclarationError as error:  # ours: it names the type and the rule, and holds no data
        wrong = f"a declaration in {module_name} is refused: {error}"
    except ModuleNotFoundError as error:
        missing = error.name or "a module"
        ours = module_name == missing or module_name.startswith(f"{missing}.")
        wrong = f"there is no module {missing} here or on the path" if ours else f"{module_name} imports {missing}, not installed"
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's module may raise anything, and only its class is told
        wrong = f"importing {module_name} raised {type(error).__name__}: run `python -c 'import {module_name}'` to see where"
    else:
        from counterfoil.core.operation_type import Operations

        if isinstance(found, Operations):
            return found
        wrong = f"{module_name} has no {name}" if found is None else f"{module_name}.{name} is not an Operations(...)"
    raise SettingsError(("operations", wrong))
