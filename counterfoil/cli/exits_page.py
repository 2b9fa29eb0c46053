"""Prints the reference page of the exit codes: `python -m counterfoil.cli.exits_page`. It is made from the codes themselves."""

import sys

from counterfoil.cli.exits import table

PAGE = f"""# Exit codes

Every command ends with one of these. With `--json` an error is one object on standard output, under `error`: `code` (closed),
`what`, `subject`, `advice` and `exit`. No error has an exception's text, a value of a setting or a payload in it.

{table()}
`counterfoil check` ends with 3 where something could not be reached, else with 1 where something is wrong. `relay` and `worker`
end with 0 after SIGTERM.
"""

if __name__ == "__main__":
    sys.stdout.write(PAGE)
