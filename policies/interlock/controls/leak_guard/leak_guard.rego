# METADATA
# title: Leak guard
# description: Private data has been accessed and this call sends, to whomever. Off unless the operator turns it on.
# custom:
#   code: leak_guard
#   page: docs/controls/leak_guard.md
#   model: >-
#     This conversation has had access to private data, and here nothing may be sent after that.
package interlock.controls.leak_guard

default verdict := {"verdict": "deny", "remedies": ["new_conversation"]}

verdict := {"verdict": "allow"} if lifted

else := {"verdict": "ask", "remedies": ["new_conversation"]} if {
	data.settings.leak_guard == "ask"
}

lifted if data.settings.leak_guard == "off"

lifted if {
	input.tool.egress == "none"
	input.tool.opens == []
}

lifted if input.forecast.private == []
