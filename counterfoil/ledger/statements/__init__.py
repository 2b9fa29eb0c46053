"""Statements: functions and constants of SQLAlchemy Core; nothing here executes anything."""
