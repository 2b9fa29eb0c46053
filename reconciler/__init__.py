"""Probes, verdicts and remedies for effects that are not yet proved. Never imports the streams."""
