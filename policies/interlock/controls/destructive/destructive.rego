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

lifted if data.settings.destructive == "off"

lifted if input.tool.effect == "none"

# What only adds something loses nothing; what it adds is judged by the other controls.
lifted if input.tool.effect == "add"

lifted if input.forecast.untrusted == []

lifted if input.call.grounded == true

# Objects and parties are targets too.
lifted if input.call.vouched.targets == true
