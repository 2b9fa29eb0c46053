"""The tests: unit without I/O, integration on real servers, acceptance through the command line."""
