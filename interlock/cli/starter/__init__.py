"""The files that `interlock init` writes, as they are written."""
