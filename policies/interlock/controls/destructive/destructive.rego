# METADATA
# title: Steered change
# description: Under untrusted content, a call would change or delete something that the person did not name.
# custom:
#   code: destructive
#   page: docs/controls/destructive.md
#   model: >-
#     This conversation has read text from outside, so a change to something that the person has not named needs their approval.
package interlock.controls.destructive

default verdict := {"verdict": "ask", "remedies": ["name_target"]}

verdict := {"verdict": "allow"} if lifted

lifted if input.tool.effect == "none"

lifted if input.forecast.untrusted == []

lifted if input.call.grounded == true
