"""The worker: ingest, admit, execute, settle, commit; and the sweepers of what is due to it."""
