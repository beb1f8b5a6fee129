# METADATA
# title: Split exfiltration
# description: Private material has gone to one destination that nobody vouches for in many calls already.
# custom:
#   code: split_exfiltration
#   page: docs/controls/split_exfiltration.md
#   model: >-
#     Private data has been sent to this destination several times already, and nobody has vouched for it, so a person must approve more.
package interlock.controls.split_exfiltration

default verdict := {"verdict": "deny", "remedies": ["name_destination", "new_conversation"]}

verdict := {"verdict": "allow"} if lifted

else := {"verdict": "ask", "remedies": ["name_destination", "new_conversation"]} if {
	data.settings.split_exfiltration == "ask"
}

lifted if data.settings.split_exfiltration == "off"

lifted if input.tool.egress == "none"

lifted if input.tool.egress == "blind"

lifted if input.forecast.private == []

lifted if input.call.grounded == true

lifted if input.call.drip == false
