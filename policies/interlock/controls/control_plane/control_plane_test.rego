package interlock.controls.control_plane_test

import data.interlock.controls.control_plane

# The trap: writing `.mcp.json` looks like writing any file. Where the arguments name such a file, the gate raises the
# effect to `control`, and here nothing that lifts a plain write lifts this.
plain := {
	"forecast": {"untrusted": ["web"], "private": ["files"], "egress": []},
	"tool": {"egress": "none", "effect": "write"},
	"call": {"control": "none", "grounded": false},
}

agents := {
	"forecast": {"untrusted": [], "private": [], "egress": []},
	"tool": {"egress": "none", "effect": "control"},
	"call": {"control": "agent", "grounded": true},
}

test_lifted_for_a_call_that_touches_no_rules if {
	every effect in ["none", "add", "write", "destroy"] {
		control_plane.verdict == {"verdict": "allow"} with input as object.union(plain, {"tool": {"effect": effect}})
	}
}

test_asks_about_the_agents_own_files if {
	control_plane.verdict == {"verdict": "ask"} with input as agents
}

test_denies_them_under_untrusted_content if {
	doc := object.union(agents, {"forecast": {"untrusted": ["web"]}})
	control_plane.verdict == {"verdict": "deny"} with input as doc
}

test_denies_interlocks_own_files_always if {
	control_plane.verdict == {"verdict": "deny"} with input as object.union(agents, {"call": {"control": "interlock"}})
}

test_a_named_file_is_no_proof if {
	doc := object.union(agents, {"forecast": {"untrusted": ["web"]}, "call": {"grounded": true}})
	control_plane.verdict.verdict == "deny" with input as doc
}

test_the_two_fields_must_agree if {
	control_plane.verdict.verdict == "deny" with input as object.union(plain, {"tool": {"effect": "control"}})
	control_plane.verdict.verdict == "deny" with input as object.union(agents, {"tool": {"effect": "write"}})
}

test_no_setting_loosens if {
	every settings in [{"control_plane": "off"}, {"trifecta": "ask", "leak_guard": "off"}, {}] {
		control_plane.verdict.verdict == "ask" with input as agents with data.settings as settings
		control_plane.verdict.verdict == "deny" with input as object.union(agents, {"call": {"control": "interlock"}})
			with data.settings as settings
	}
}

test_words_that_nobody_knows_prove_nothing if {
	every word in ["", "None", "nobody", null, false, []] {
		control_plane.verdict.verdict == "deny" with input as object.union(plain, {"call": {"control": word}})
		control_plane.verdict.verdict == "deny" with input as object.union(plain, {"tool": {"effect": word}})
	}
}

test_what_is_missing_proves_nothing if {
	every path in ["call/control", "tool/effect", "call", "tool"] {
		control_plane.verdict.verdict == "deny" with input as json.remove(plain, [path])
		control_plane.verdict.verdict == "deny" with input as json.remove(agents, [path])
	}
	control_plane.verdict.verdict == "deny" with input as json.remove(agents, ["forecast/untrusted"])
	control_plane.verdict.verdict == "deny" with input as {}
}
