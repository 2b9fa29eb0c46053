"""The topics that a ledger needs, held against those on the brokers."""
