# METADATA
# title: Tenant
# description: Each tenant's agent writes to the domains of that tenant only.
# custom:
#   code: tenant
#   page: tenant.md
#   model: This destination belongs to another tenant.
package controls.tenant

default verdict := {"verdict": "deny"}

verdict := {"verdict": "allow"} if lifted

lifted if input.tool.egress == "none"

lifted if input.tool.name == "fetch"

lifted if {
	is_string(input.call.destinations[0].value)
	every destination in input.call.destinations {
		ours(destination)
	}
}

ours(destination) if {
	destination.kind == "email"
	is_string(destination.value)
	[_, domain] := split(destination.value, "@")
	some listed in data.settings.controls.tenants[input.conversation.namespace]
	domain == listed
}
