"""For users' own tests: what can be known about declared operation types without a server. Never runs an effect or a probe."""

from counterfoil.testing.mistakes import Mistake, check

__all__ = ["Mistake", "check"]
