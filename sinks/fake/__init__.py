"""The fake sink: an outside system in a process of its own, which misbehaves by plan and keeps its own journal of what it did.

    with FakeSink.started(folder, plan=Plan(rules=(Rule(Behaviour.ANSWER_LOST, entity="452", calls=(1,)),))) as sink:
        …                                             # let effects call sink.url
        assert sink.journal.doubled() == 0

It is what tests, the demo and rehearsals believe about effects. It must never be told what the ledger thinks.
"""

from counterfoil.sinks.fake.adapter import Mapped, fake_adapter
from counterfoil.sinks.fake.client import FakeClient
from counterfoil.sinks.fake.content import Nature
from counterfoil.sinks.fake.plan import Behaviour, Plan, Rule
from counterfoil.sinks.fake.process import FakeSink
from counterfoil.sinks.journal import Entry, Fate, Journal, doubled, effects_per_operation

__all__ = [
    "Behaviour",
    "Entry",
    "FakeClient",
    "FakeSink",
    "Fate",
    "Journal",
    "Mapped",
    "Nature",
    "Plan",
    "Rule",
    "doubled",
    "effects_per_operation",
    "fake_adapter",
]
