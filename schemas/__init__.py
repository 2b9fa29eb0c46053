"""The contracts: .avsc files, the codec and the lock file. Never talks to a broker or a database."""
