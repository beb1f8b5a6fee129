# METADATA
# title: Lockdown
# description: After untrusted content nothing is sent, changed or opened, whoever vouches for it. Off unless the operator turns it on.
# custom:
#   code: lockdown
#   page: docs/controls/lockdown.md
#   model: >-
#     This conversation has read text from outside, and here nothing is sent or changed after that.
package interlock.controls.lockdown

default verdict := {"verdict": "deny", "remedies": ["new_conversation"]}

verdict := {"verdict": "allow"} if lifted

else := {"verdict": "ask", "remedies": ["new_conversation"]} if {
	data.settings.lockdown == "ask"
}

lifted if data.settings.lockdown == "off"

lifted if input.forecast.untrusted == []

lifted if {
	input.tool.egress == "none"
	input.tool.opens == []
	input.tool.effect == "none"
}
