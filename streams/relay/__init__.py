"""The relay: outbox rows become records, and a row is gone when its own delivery report says so."""
