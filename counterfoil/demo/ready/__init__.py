"""`make ready`: three known operations on a real Kafka and PostgreSQL, and what `operations show` must say of each afterwards.

It is the shortest proof that a set-up keeps the promises: a result survives a kill, temporary errors end in one effect, and a
payload that can never succeed ends with its cause and comes back no more.
"""
