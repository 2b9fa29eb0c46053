"""Held records: taken up when their operation turns up, and let go by a person."""
