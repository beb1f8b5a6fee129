"""One file per host; each translates and decides nothing."""
