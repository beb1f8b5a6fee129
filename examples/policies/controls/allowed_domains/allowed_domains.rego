# METADATA
# title: Allowed domains
# description: Mail goes to the domains that the operator lists, and asks for any other.
# custom:
#   code: allowed_domains
#   page: allowed_domains.md
#   model: Mail to this domain needs a person's approval.
package controls.allowed_domains

default verdict := {"verdict": "ask"}

verdict := {"verdict": "allow"} if lifted

lifted if input.tool.egress == "none"

lifted if input.tool.name == "fetch"

lifted if {
	is_string(input.call.destinations[0].value)
	every destination in input.call.destinations {
		allowed(destination)
	}
}

# The part after the last @ of an address in normal form, compared whole: never a suffix of a text.
allowed(destination) if {
	destination.kind == "email"
	is_string(destination.value)
	[_, domain] := split(destination.value, "@")
	some listed in data.settings.controls.allowed_domains
	domain == listed
}
