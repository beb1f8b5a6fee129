# METADATA
# title: Lethal trifecta
# description: Untrusted content, private data and a destination that nobody vouches for would meet in this call.
# custom:
#   code: trifecta
#   page: docs/controls/trifecta.md
#   model: >-
#     This conversation has read text from outside and has had access to private data, so nothing may be sent to a destination that the person or the operator has not named.
package interlock.controls.trifecta

default verdict := {"verdict": "deny", "remedies": ["name_destination", "new_conversation"]}

verdict := {"verdict": "allow"} if lifted

else := {"verdict": "ask", "remedies": ["name_destination", "new_conversation"]} if {
	data.settings.trifecta == "ask"
}

lifted if input.tool.egress == "none"

lifted if input.tool.egress == "blind"

lifted if input.forecast.untrusted == []

lifted if input.forecast.private == []

lifted if input.call.grounded == true
