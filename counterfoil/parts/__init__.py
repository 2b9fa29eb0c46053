"""Real servers for tests, bench and demo: PostgreSQL 18, Kafka 4.4, a mock cluster, and a proxy that breaks connections.

All of them listen on loopback only, on free ports, in temporary folders, and end with the process that started them. Nothing
here may be imported by the code that runs in production.
"""

from counterfoil.parts.kafka import Kafka, kafka
from counterfoil.parts.mock_broker import mock_broker
from counterfoil.parts.postgres import Postgres, postgres
from counterfoil.parts.proxy import FaultProxy, fault_proxy
from counterfoil.parts.server import PartFailed, PartMissing
from counterfoil.parts.template import database_from_template, migrated_template

__all__ = [
    "FaultProxy",
    "Kafka",
    "PartFailed",
    "PartMissing",
    "Postgres",
    "database_from_template",
    "fault_proxy",
    "kafka",
    "migrated_template",
    "mock_broker",
    "postgres",
]
