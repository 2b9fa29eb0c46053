"""The roads of records: relay, worker, due sweeper and topics. Knows Kafka; never writes SQL of its own."""
