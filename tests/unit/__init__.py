"""Tests of the core: by enumeration and by property, without I/O."""
