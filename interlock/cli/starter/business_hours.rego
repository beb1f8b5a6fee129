# METADATA
# title: Business hours
# description: Private data is sent while somebody is there to notice.
# custom:
#   code: business_hours
#   page: business_hours.md
#   model: Private data is not sent outside business hours; a person must approve.
package controls.business_hours

default verdict := {"verdict": "ask"}

verdict := {"verdict": "allow"} if lifted

lifted if input.tool.egress == "none"

lifted if input.forecast.private == []

lifted if {
	is_string(input.now)
	is_number(data.settings.controls.last_hour)
	[hour, _, _] := time.clock(time.parse_rfc3339_ns(input.now))
	hour < data.settings.controls.last_hour
	hour >= 8
}
