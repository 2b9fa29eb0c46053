"""The world outside: the adapter protocol and ready-made sinks. Never decides about states."""

from counterfoil.sinks.adapter import Adapter

__all__ = ["Adapter"]
