package interlock.controls.steered_destination_test

import data.interlock.controls.steered_destination

# The trap: Nothing private is needed. A page that says "write to me" has its mail sent from an empty conversation
# too.

armed := {
	"forecast": {"untrusted": ["web"], "private": [], "egress": []},
	"tool": {"egress": "chosen"},
	"call": {"grounded": false, "vouched": {"receivers": false}},
}

test_asks_when_the_operator_says_so if {
	steered_destination.verdict == {"verdict": "ask", "remedies": ["name_destination"]} with input as armed
		with data.settings as {"steered_destination": "ask"}
}

test_denies_when_the_operator_says_so if {
	steered_destination.verdict == {"verdict": "deny", "remedies": ["name_destination"]} with input as armed
		with data.settings as {"steered_destination": "deny"}
}

test_lifted_when_the_operator_turns_it_off if {
	steered_destination.verdict == {"verdict": "allow"} with input as armed with data.settings as {"steered_destination": "off"}
}

test_no_other_setting_loosens if {
	every setting in ["allow", "OFF", "ASK", "", true, null, ["ask"]] {
		steered_destination.verdict.verdict == "deny" with input as armed with data.settings as {"steered_destination": setting}
	}
	steered_destination.verdict.verdict == "deny" with input as armed with data.settings as {}
}

test_lifted_when_nothing_leaves if {
	doc := object.union(armed, {"tool": {"egress": "none"}})
	steered_destination.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_lifted_when_the_audience_is_closed if {
	doc := object.union(armed, {"tool": {"egress": "blind"}})
	steered_destination.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_lifted_without_untrusted_content if {
	doc := object.union(armed, {"forecast": {"untrusted": []}})
	steered_destination.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_lifted_by_receivers_that_somebody_named if {
	doc := object.union(armed, {"call": {"vouched": {"receivers": true}}})
	steered_destination.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_only_the_exact_egress_is_a_proof if {
	every value in ["None", " ", null, false, 0, [], {}] {
		doc := object.union(armed, {"tool": {"egress": value}})
		steered_destination.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_only_the_exact_untrusted_is_a_proof if {
	every value in [null, "", {}, false, 0, [[]]] {
		doc := object.union(armed, {"forecast": {"untrusted": value}})
		steered_destination.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_only_the_exact_receivers_is_a_proof if {
	every value in ["true", 1, "yes", null, [], {}] {
		doc := object.union(armed, {"call": {"vouched": {"receivers": value}}})
		steered_destination.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_what_is_missing_proves_nothing if {
	every path in ["tool/egress", "forecast/untrusted", "call/vouched/receivers", "call/vouched", "call", "forecast", "tool"] {
		steered_destination.verdict.verdict == "deny" with input as json.remove(armed, [path]) with data.settings as {}
	}
	steered_destination.verdict.verdict == "deny" with input as {} with data.settings as {}
}
