"""Engines that answer documents, and the loading of controls."""
