# METADATA
# title: Two people
# description: A payment needs two who vouch for the payee (the person, who typed it, and the operator, who lists it).
# custom:
#   code: two_people
#   page: two_people.md
#   model: A payee that only one side vouches for needs a person's approval.
package controls.two_people

default verdict := {"verdict": "ask"}

verdict := {"verdict": "allow"} if lifted

lifted if input.tool.egress == "none"

lifted if input.tool.name in {"fetch", "send_email"}

lifted if {
	input.call.destinations[0].origin == "user"
	every destination in input.call.destinations {
		destination.origin == "user"
		listed(destination.value)
	}
}

listed(value) if {
	some payee in data.settings.controls.payees
	value == payee
}
