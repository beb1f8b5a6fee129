package interlock.controls.destructive_test

import data.interlock.controls.destructive

# The trap: nothing private is needed and nothing leaves. A page that says "delete the backups" does its harm inside.
armed := {
	"forecast": {"untrusted": ["web"], "private": [], "egress": []},
	"tool": {"egress": "none", "effect": "destroy"},
	"call": {"grounded": false},
}

test_asks_before_a_steered_change if {
	every effect in ["write", "destroy", "control"] {
		destructive.verdict == {"verdict": "ask", "remedies": ["name_target"]} with input as object.union(
			armed,
			{"tool": {"effect": effect}},
		)
	}
}

test_lifted_when_nothing_changes if {
	destructive.verdict == {"verdict": "allow"} with input as object.union(armed, {"tool": {"effect": "none"}})
}

test_lifted_when_something_is_only_added if {
	destructive.verdict == {"verdict": "allow"} with input as object.union(armed, {"tool": {"effect": "add"}})
}

test_lifted_by_named_objects_and_parties if {
	doc := object.union(armed, {"call": {"vouched": {"targets": true}}})
	destructive.verdict == {"verdict": "allow"} with input as doc
}

test_only_true_is_a_named_target if {
	every value in ["true", 1, null, [], {}, false] {
		doc := object.union(armed, {"call": {"vouched": {"targets": value}}})
		destructive.verdict.verdict == "ask" with input as doc
	}
}

test_lifted_without_untrusted_content if {
	destructive.verdict == {"verdict": "allow"} with input as object.union(armed, {"forecast": {"untrusted": []}})
}

test_lifted_by_a_named_target if {
	destructive.verdict == {"verdict": "allow"} with input as object.union(armed, {"call": {"grounded": true}})
}

test_the_reach_of_the_tool_is_no_proof if {
	every egress in ["none", "blind", "chosen"] {
		destructive.verdict.verdict == "ask" with input as object.union(armed, {"tool": {"egress": egress}})
	}
}

test_lifted_when_the_operator_turns_it_off if {
	destructive.verdict == {"verdict": "allow"} with input as armed with data.settings as {"destructive": "off"}
}

test_no_other_setting_loosens if {
	every settings in [{"destructive": "ask"}, {"destructive": null}, {"trifecta": "ask", "leak_guard": "off"}, {}] {
		destructive.verdict.verdict == "ask" with input as armed with data.settings as settings
	}
}

test_an_effect_that_nobody_knows_is_a_change if {
	every effect in ["", "None", "read", null, false, []] {
		destructive.verdict.verdict == "ask" with input as object.union(armed, {"tool": {"effect": effect}})
	}
}

test_what_is_missing_proves_nothing if {
	every path in ["tool/effect", "forecast/untrusted", "call/grounded", "tool", "forecast", "call"] {
		destructive.verdict.verdict == "ask" with input as json.remove(armed, [path])
	}
	destructive.verdict.verdict == "ask" with input as {}
}
