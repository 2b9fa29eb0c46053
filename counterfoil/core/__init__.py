"""The rules: states, outcomes, identities, decisions, and the values that a user declares.

Pure: nothing here reads a clock, draws a random number, logs or does I/O, and nothing outside the standard library is imported.
"""
