"""Tests on a real PostgreSQL and a real Kafka."""
