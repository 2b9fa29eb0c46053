"""`python -m counterfoil.sinks.fake`: the fake sink's process."""

from counterfoil.sinks.fake.server import main

if __name__ == "__main__":
    main()
