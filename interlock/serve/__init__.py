"""``interlock serve``: a small HTTP decision service for agents that are not in Python.

A request is authenticated, read strictly, answered by one function of :mod:`interlock.serve.desk` in a worker thread,
and forgotten. Nothing of a conversation is kept here that a store does not have: any process answers any request.
"""
