# METADATA
# title: Steered entry
# description: Under untrusted content, an entry that only the person sees would hold names, times or links that the person has not named.
# custom:
#   code: self_only
#   page: docs/controls/self_only.md
#   model: >-
#     This conversation has read text from outside, so an entry for the person that holds something they have not named needs their approval.
package interlock.controls.self_only

default verdict := {"verdict": "deny", "remedies": ["name_target"]}

verdict := {"verdict": "allow"} if lifted

else := {"verdict": "ask", "remedies": ["name_target"]} if {
	data.settings.self_only == "ask"
}

lifted if data.settings.self_only == "off"

lifted if input.tool.audience == ""

lifted if input.tool.audience == "closed"

lifted if input.forecast.untrusted == []

lifted if {
	input.call.vouched.parties == true
	input.call.vouched.links == true
}
