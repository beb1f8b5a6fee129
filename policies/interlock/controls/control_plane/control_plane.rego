# METADATA
# title: Control plane
# description: The call would change what agents or Interlock itself may do (policy, hooks, start-up files, MCP configuration).
# custom:
#   code: control_plane
#   page: docs/controls/control_plane.md
#   model: >-
#     The call would change files that decide what an agent may do. Interlock's own are never changed from here.
package interlock.controls.control_plane

default verdict := {"verdict": "deny"}

verdict := {"verdict": "allow"} if {
	input.call.control == "none"
	input.tool.effect in {"none", "add", "write", "destroy"}
}

else := {"verdict": "ask"} if {
	input.call.control == "agent"
	input.tool.effect == "control"
	input.forecast.untrusted == []
}
