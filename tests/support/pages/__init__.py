"""Modules that print one page of `docs/reference` each, from the code; they are no part of the package."""
