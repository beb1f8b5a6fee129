package interlock.controls.steered_object_test

import data.interlock.controls.steered_object

# The trap: Neither a send nor a change is needed for it to object: what is attached or shared is chosen by an
# argument alone.

armed := {
	"forecast": {"untrusted": ["web"], "private": [], "egress": []},
	"tool": {"egress": "none", "effect": "none"},
	"call": {"grounded": true, "vouched": {"objects": false}},
}

test_asks_when_the_operator_says_so if {
	steered_object.verdict == {"verdict": "ask", "remedies": ["name_target"]} with input as armed
		with data.settings as {"steered_object": "ask"}
}

test_denies_when_the_operator_says_so if {
	steered_object.verdict == {"verdict": "deny", "remedies": ["name_target"]} with input as armed
		with data.settings as {"steered_object": "deny"}
}

test_lifted_when_the_operator_turns_it_off if {
	steered_object.verdict == {"verdict": "allow"} with input as armed with data.settings as {"steered_object": "off"}
}

test_no_other_setting_loosens if {
	every setting in ["allow", "OFF", "ASK", "", true, null, ["ask"]] {
		steered_object.verdict.verdict == "deny" with input as armed with data.settings as {"steered_object": setting}
	}
	steered_object.verdict.verdict == "deny" with input as armed with data.settings as {}
}

test_lifted_without_untrusted_content if {
	doc := object.union(armed, {"forecast": {"untrusted": []}})
	steered_object.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_lifted_by_objects_that_somebody_named if {
	doc := object.union(armed, {"call": {"vouched": {"objects": true}}})
	steered_object.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_only_the_exact_untrusted_is_a_proof if {
	every value in [null, "", {}, false, 0, [[]]] {
		doc := object.union(armed, {"forecast": {"untrusted": value}})
		steered_object.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_only_the_exact_objects_is_a_proof if {
	every value in ["true", 1, "yes", null, [], {}] {
		doc := object.union(armed, {"call": {"vouched": {"objects": value}}})
		steered_object.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_what_is_missing_proves_nothing if {
	every path in ["forecast/untrusted", "call/vouched/objects", "call/vouched", "call", "forecast"] {
		steered_object.verdict.verdict == "deny" with input as json.remove(armed, [path]) with data.settings as {}
	}
	steered_object.verdict.verdict == "deny" with input as {} with data.settings as {}
}
