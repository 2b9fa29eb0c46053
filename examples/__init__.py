"""Six operation types, one of each kind, and a program that uses them; type-checked with everything else.

`clients` stands for a user's own client libraries. The part of `use` that rehearses faults with `counterfoil.testing` comes with
that kit.
"""
