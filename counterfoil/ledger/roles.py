"""The database roles of a ledger: made with their grants from core's list, and asked before an act.

They are groups without a login: an administrator of the database grants them to logins (`GRANT cf_NAME_operator TO anna`). What a
login may do is asked of the session's login, whatever role it has taken since; the database itself refuses what is not granted.
"""

from typing import NamedTuple

from psycopg import sql
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from counterfoil.core.errors import Refused
from counterfoil.core.reasons import Reason
from counterfoil.core.roles import GRANTS, Grant, Role, role_name
from counterfoil.ledger.engine import ledger_engine
from counterfoil.ledger.tables import SCHEMA

_THERE = text("SELECT rolname FROM pg_roles WHERE rolname = ANY(:names)")
#: The roles that this session's login is a member of, and whether the ledger's schema is its own.
_HELD = text(
    """
SELECT ARRAY(SELECT rolname::text FROM pg_roles WHERE rolname = ANY(:names) AND pg_has_role(session_user, oid, 'MEMBER')) AS held,
    EXISTS (SELECT FROM pg_namespace WHERE nspname = :schema AND pg_has_role(session_user, nspowner, 'MEMBER')) AS owner
"""
)
_LOCK = text("SELECT pg_advisory_xact_lock(hashtext('counterfoil.roles'))")


class Made(NamedTuple):
    """What `ensure` came to. `by_hand`: statements for somebody who may, where this login may not; empty where all is there."""

    roles: tuple[str, ...]
    by_hand: tuple[str, ...]


def ensure(url: str, ledger: str) -> Made:
    """Makes the roles that are missing and grants what the list says; the same again changes nothing.

    A login that may not leaves everything as it is, and is told what to run by hand.
    """
    names = tuple(role_name(ledger, role) for role in Role)
    engine = ledger_engine(url, pool_size=1)
    try:
        with engine.connect() as connection:
            statements = _statements(connection, ledger)
            connection.rollback()
            try:
                with connection.begin():
                    connection.execute(_LOCK)
                    missing = set(names) - set(connection.execute(_THERE, {"names": list(names)}).scalars())
                    for role in sorted(missing):
                        connection.execute(text(_create(connection, role)))
                    for statement in statements:
                        connection.execute(text(statement))
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) not in _NOT_ALLOWED:
                    raise
                create = [_create(connection, role) for role in names]
                return Made((), tuple(f"{one};" for one in (*create, *statements)))
    finally:
        engine.dispose()
    return Made(names, ())


_NOT_ALLOWED = ("42501", "0LP01")  # insufficient_privilege, invalid_grant_operation


def _create(connection: Connection, role: str) -> str:
    return _said(connection, sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(role)))


def _statements(connection: Connection, ledger: str) -> list[str]:
    """Grants, each role beside what the roles before it have."""
    found: list[sql.Composed] = []
    before: Role | None = None
    schema = sql.Identifier(SCHEMA)
    for role, grants in GRANTS.items():
        name = sql.Identifier(role_name(ledger, role))
        found.append(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(schema, name))
        if before is not None:
            found.append(sql.SQL("GRANT {} TO {}").format(sql.Identifier(role_name(ledger, before)), name))
        found += [_grant(grant, name) for grant in grants]
        if role is Role.OPERATOR:
            found.append(sql.SQL("GRANT USAGE ON ALL SEQUENCES IN SCHEMA {} TO {}").format(schema, name))
        before = role
    return [_said(connection, one) for one in found]


def _grant(grant: Grant, name: sql.Identifier) -> sql.Composed:
    if grant.table == "ALL TABLES":
        return sql.SQL("GRANT {} ON ALL TABLES IN SCHEMA {} TO {}").format(
            sql.SQL(grant.privileges), sql.Identifier(SCHEMA), name
        )
    columns = sql.SQL("")
    if grant.columns:
        columns = sql.SQL(" ({})").format(sql.SQL(", ").join(map(sql.Identifier, grant.columns)))  # type: ignore[assignment]
    table = sql.Identifier(SCHEMA, grant.table)
    return sql.SQL("GRANT {}{} ON {} TO {}").format(sql.SQL(grant.privileges), columns, table, name)


def _said(connection: Connection, statement: sql.Composed) -> str:
    return statement.as_string(connection.connection.driver_connection)


def role_of(connection: Connection, ledger: str) -> Role | None:
    """The highest role of this session's login; the schema's owner is an administrator. None: it has none."""
    names = {role_name(ledger, role): role for role in Role}
    row = connection.execute(_HELD, {"names": list(names), "schema": SCHEMA}).one()
    if row.owner:
        return Role.ADMINISTRATOR
    held = [role for name, role in names.items() if name in row.held]
    return held[-1] if held else None


def require(connection: Connection, ledger: str, role: Role) -> Role:
    """The login's role, where it covers the one that is needed. Raises Refused (role_needed), which names the needed one."""
    there = role_of(connection, ledger)
    if there is None or not there.covers(role):
        refused = Refused(Reason.ROLE_NEEDED, subject=role_name(ledger, role))
        raise refused
    return there
