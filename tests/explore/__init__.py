"""The exhaustive search of the real core, its named traces, and the seeded simulator: `python -m tests.explore`."""
