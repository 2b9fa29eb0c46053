"""What the tests stand on: ledgers, topics, clocks, processes and the guard against leaked secrets."""
