# METADATA
# title: Amount limit
# description: Payments above the operator's limit need a person.
# custom:
#   code: amount_limit
#   page: amount_limit.md
#   model: Payments of this amount need a person's approval.
package controls.amount_limit

default verdict := {"verdict": "ask"}

verdict := {"verdict": "allow"} if lifted

lifted if input.tool.egress == "none"

lifted if input.tool.name in {"fetch", "send_email"}

lifted if {
	is_number(input.call.arguments.amount)
	is_number(data.settings.controls.amount_limit)
	input.call.arguments.amount <= data.settings.controls.amount_limit
	input.call.arguments.amount > 0
}
