"""Commands. Their output goes to standard output, everything else to standard error."""
