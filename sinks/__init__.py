"""The world outside: the adapter protocol and ready-made sinks. Never decides about states."""
