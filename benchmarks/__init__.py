"""Measurements. Ratios from one run on one machine; never a timed test."""
