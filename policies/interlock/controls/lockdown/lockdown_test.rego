package interlock.controls.lockdown_test

import data.interlock.controls.lockdown

# The trap: Everything is vouched for, and still nothing happens: that is what this control is for.

armed := {
	"forecast": {"untrusted": ["web"], "private": [], "egress": []},
	"tool": {"egress": "chosen", "opens": [], "effect": "none"},
	"call": {"grounded": true},
}

test_asks_when_the_operator_says_so if {
	lockdown.verdict == {"verdict": "ask", "remedies": ["new_conversation"]} with input as armed
		with data.settings as {"lockdown": "ask"}
}

test_denies_when_the_operator_says_so if {
	lockdown.verdict == {"verdict": "deny", "remedies": ["new_conversation"]} with input as armed
		with data.settings as {"lockdown": "deny"}
}

test_lifted_when_the_operator_turns_it_off if {
	lockdown.verdict == {"verdict": "allow"} with input as armed with data.settings as {"lockdown": "off"}
}

test_no_other_setting_loosens if {
	every setting in ["allow", "OFF", "ASK", "", true, null, ["ask"]] {
		lockdown.verdict.verdict == "deny" with input as armed with data.settings as {"lockdown": setting}
	}
	lockdown.verdict.verdict == "deny" with input as armed with data.settings as {}
}

test_lifted_without_untrusted_content if {
	doc := object.union(armed, {"forecast": {"untrusted": []}})
	lockdown.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_lifted_by_a_call_that_only_reads if {
	doc := object.union(armed, {"tool": {"egress": "none"}})
	lockdown.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_only_the_exact_untrusted_is_a_proof if {
	every value in [null, "", {}, false, 0, [[]]] {
		doc := object.union(armed, {"forecast": {"untrusted": value}})
		lockdown.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_only_the_exact_egress_is_a_proof if {
	every value in ["None", " ", null, false, 0, [], {}] {
		doc := object.union(armed, {"tool": {"egress": value}})
		lockdown.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_only_the_exact_opens_is_a_proof if {
	every value in [null, "", {}, false, 0, [[]]] {
		doc := object.union(object.union(armed, {"tool": {"egress": "none"}}), {"tool": {"opens": value}})
		lockdown.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_only_the_exact_effect_is_a_proof if {
	every value in ["None", " ", null, false, 0, [], {}] {
		doc := object.union(object.union(armed, {"tool": {"egress": "none"}}), {"tool": {"effect": value}})
		lockdown.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_a_change_a_channel_and_a_closed_audience_are_held if {
	every tool in [
		{"egress": "none", "effect": "add"},
		{"egress": "none", "effect": "write"},
		{"egress": "none", "opens": ["egress:channel"]},
		{"egress": "blind"},
	] {
		doc := object.union(armed, {"tool": tool})
		lockdown.verdict.verdict == "deny" with input as doc with data.settings as {"lockdown": "deny"}
	}
}

test_what_is_missing_proves_nothing if {
	every path in ["forecast/untrusted", "tool/egress", "tool/opens", "tool/effect", "forecast", "tool"] {
		lockdown.verdict.verdict == "deny" with input as json.remove(armed, [path]) with data.settings as {}
	}
	lockdown.verdict.verdict == "deny" with input as {} with data.settings as {}
}
