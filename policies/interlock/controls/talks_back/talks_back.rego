# METADATA
# title: Destination that talks back
# description: The call would send, while private data is exposed, to a place that this conversation has read untrusted content from.
# custom:
#   code: talks_back
#   page: docs/controls/talks_back.md
#   model: >-
#     The destination is itself a source of text that this conversation has read, and private data has been accessed, so a person must approve.
package interlock.controls.talks_back

default verdict := {"verdict": "ask", "remedies": ["new_conversation"]}

verdict := {"verdict": "allow"} if lifted

lifted if input.tool.egress == "none"

lifted if input.tool.egress == "blind"

lifted if input.forecast.private == []

lifted if {
	# At least one destination, in a list: `every` is true of nothing at all, and walks objects too.
	input.call.destinations[0].talks_back == false
	every destination in input.call.destinations {
		destination.talks_back == false
	}
}
