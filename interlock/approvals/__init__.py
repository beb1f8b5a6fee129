"""Ways to a person: a terminal, another terminal, a signed webhook. Each implements :class:`interlock.ports.Approver`.

``terminal`` asks where the agent runs, ``elsewhere`` waits until somebody answers with ``interlock approvals`` (or a
host with ``guard.answer``), ``webhook`` tells a service and takes its signed answer, ``signing`` says what is signed.
"""
