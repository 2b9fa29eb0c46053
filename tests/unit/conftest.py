"""Properties are never decided by a timing: a loaded machine is no counterexample."""

from hypothesis import settings

settings.register_profile("counterfoil", parent=settings(), deadline=None)
settings.load_profile("counterfoil")
