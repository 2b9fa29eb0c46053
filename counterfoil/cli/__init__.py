"""The command line of Counterfoil: `counterfoil COMMAND`. It reads settings, calls one part, and prints what came of it.

It holds no rule and no SQL, and must never print a payload, a secret or an exception's text.
"""

from counterfoil.cli.app import main

__all__ = ["main"]
