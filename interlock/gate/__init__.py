"""The protocol around one tool call: steps that yield effects, drivers that answer them, permits."""
