# METADATA
# title: Credentials sent under untrusted content
# description: Untrusted content and credentials are there, and this call sends. Nobody's word for the receiver lifts this.
# custom:
#   code: secret_egress
#   page: docs/controls/secret_egress.md
#   model: >-
#     This conversation has read text from outside and credentials may be in reach, so nothing is sent, whoever the receiver is.
package interlock.controls.secret_egress

default verdict := {"verdict": "deny", "remedies": ["new_conversation"]}

verdict := {"verdict": "allow"} if lifted

else := {"verdict": "ask", "remedies": ["new_conversation"]} if {
	data.settings.secret_egress == "ask"
}

lifted if {
	input.tool.egress == "none"
	input.tool.opens == []
}

lifted if input.forecast.untrusted == []

lifted if input.forecast.credentials == false
