"""Journals and other stores behind the ports."""
