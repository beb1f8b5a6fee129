# METADATA
# title: Steered link
# description: Under untrusted content, outgoing text holds an address, a page or an account that nobody vouches for.
# custom:
#   code: steered_link
#   page: docs/controls/steered_link.md
#   model: >-
#     This conversation has read text from outside, and the text that would be sent holds a link, address or account that the person has not named.
package interlock.controls.steered_link

default verdict := {"verdict": "deny", "remedies": ["name_destination"]}

verdict := {"verdict": "allow"} if lifted

else := {"verdict": "ask", "remedies": ["name_destination"]} if {
	data.settings.steered_link == "ask"
}

lifted if data.settings.steered_link == "off"

# A text that is kept is read later: by the person, or by whoever it is then shared with.
lifted if {
	input.tool.egress == "none"
	input.tool.effect == "none"
}

lifted if input.forecast.untrusted == []

lifted if input.call.vouched.links == true
