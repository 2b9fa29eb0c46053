"""All operation types of this ledger; the setting `operations = "examples.operations:OPERATIONS"` names them."""

from counterfoil import Operations
from examples.adopt_legacy_job import adopt_legacy_job
from examples.charge_card import charge_card, refund_charge
from examples.export_report import export_report
from examples.send_mail import send_mail
from examples.sync_customer import sync_customer
from examples.upsert_projection import upsert_projection

OPERATIONS = Operations(adopt_legacy_job, charge_card, refund_charge, export_report, send_mail, sync_customer, upsert_projection)
