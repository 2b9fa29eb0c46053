"""`make crash`: every failpoint with every fault, on real servers, each cell judged from the outside.

A cell is one ledger with its callers, a relay and two workers, of which one process is armed. The fault strikes where the armed
one stands, everything is mended, and when all has come to rest the sink's journal, the topics, the ledger and the callers' own
history are held against each other.
"""
