# METADATA
# title: Open channel
# description: Private data, untrusted content and a standing channel (a port, a public share, a webhook) would be there together.
# custom:
#   code: open_channel
#   page: docs/controls/open_channel.md
#   model: >-
#     A standing channel to the outside is open or would be opened while this conversation has read text from outside and has access to private data.
package interlock.controls.open_channel

default verdict := {"verdict": "deny", "remedies": ["new_conversation"]}

verdict := {"verdict": "allow"} if lifted

else := {"verdict": "ask", "remedies": ["new_conversation"]} if {
	data.settings.open_channel == "ask"
}

lifted if input.forecast.egress == []

lifted if input.forecast.untrusted == []

lifted if input.forecast.private == []

# A call that reads nothing private, opens nothing and changes nothing puts nothing into the channel.
lifted if {
	input.call.labels.private == []
	input.tool.opens == []
	input.tool.effect == "none"
}
