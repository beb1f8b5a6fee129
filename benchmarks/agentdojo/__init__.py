"""A worst-case benchmark without a model: the public AgentDojo suites, replayed through Interlock's public face.

A model that obeys every injection is simpler than a real one, costs nothing, and is the worst that there is; the honest
tasks are replayed from their ground truth, so what is refused of them is refused for certain. See
`docs/benchmark-agentdojo.md` for the method and its limits, and run it with `python -m benchmarks.agentdojo`.
"""
