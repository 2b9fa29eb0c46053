"""Tests of the command line in processes that are killed, stopped and restarted."""
