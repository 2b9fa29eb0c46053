"""Contracts: the .avsc files, the codec of commands and state records, the headers of every record, the registry's lock."""
