# METADATA
# title: Unknown tool
# description: Nobody has declared this tool, so it may return, read and send anything.
# custom:
#   code: unknown_tool
#   page: docs/controls/unknown_tool.md
#   model: >-
#     The operator has not declared this tool, so it runs only if a person approves.
package interlock.controls.unknown_tool

default verdict := {"verdict": "ask", "remedies": ["declare_tool"]}

verdict := {"verdict": "allow"} if input.tool.known == true
