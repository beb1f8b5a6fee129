# METADATA
# title: Steered destination
# description: Under untrusted content, a call would send to a destination that nobody vouches for.
# custom:
#   code: steered_destination
#   page: docs/controls/steered_destination.md
#   model: >-
#     This conversation has read text from outside, so sending to a destination that the person or the operator has not named needs a person's approval.
package interlock.controls.steered_destination

default verdict := {"verdict": "deny", "remedies": ["name_destination"]}

verdict := {"verdict": "allow"} if lifted

else := {"verdict": "ask", "remedies": ["name_destination"]} if {
	data.settings.steered_destination == "ask"
}

lifted if data.settings.steered_destination == "off"

lifted if input.tool.egress == "none"

lifted if input.tool.egress == "blind"

lifted if input.forecast.untrusted == []

# A call that names a receiver, and somebody vouches for each; or a tool whose calls can't name any.
lifted if input.call.vouched.receivers == true
