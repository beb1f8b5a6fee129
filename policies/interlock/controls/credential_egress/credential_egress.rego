# METADATA
# title: Credential egress
# description: Credentials have been accessed and this call sends. Credentials go nowhere unasked, whoever the receiver is.
# custom:
#   code: credential_egress
#   page: docs/controls/credential_egress.md
#   model: >-
#     Credentials may be in reach of this call, so anything that is sent needs a person's approval.
package interlock.controls.credential_egress

default verdict := {"verdict": "ask", "remedies": ["new_conversation"]}

verdict := {"verdict": "allow"} if lifted

lifted if {
	input.tool.egress == "none"
	input.tool.opens == []
}

lifted if input.forecast.credentials == false
