# METADATA
# title: Credentials read under untrusted content
# description: Under untrusted content, a call would bring credentials into the conversation.
# custom:
#   code: secret_read
#   page: docs/controls/secret_read.md
#   model: >-
#     This conversation has read text from outside, so credentials are not read in it.
package interlock.controls.secret_read

default verdict := {"verdict": "deny", "remedies": ["new_conversation"]}

verdict := {"verdict": "allow"} if lifted

else := {"verdict": "ask", "remedies": ["new_conversation"]} if {
	data.settings.secret_read == "ask"
}

lifted if data.settings.secret_read == "off"

lifted if input.forecast.untrusted == []

lifted if input.call.credentials == false
