package interlock.controls.steered_party_test

import data.interlock.controls.steered_party

# The trap: A booking sends nothing that is private and changes nothing that was there. Who gains by it is what
# counts.

armed := {
	"forecast": {"untrusted": ["web"], "private": [], "egress": []},
	"tool": {"egress": "none", "effect": "add"},
	"call": {"grounded": true, "vouched": {"parties": false}},
}

test_asks_when_the_operator_says_so if {
	steered_party.verdict == {"verdict": "ask", "remedies": ["name_target"]} with input as armed
		with data.settings as {"steered_party": "ask"}
}

test_denies_when_the_operator_says_so if {
	steered_party.verdict == {"verdict": "deny", "remedies": ["name_target"]} with input as armed
		with data.settings as {"steered_party": "deny"}
}

test_lifted_when_the_operator_turns_it_off if {
	steered_party.verdict == {"verdict": "allow"} with input as armed with data.settings as {"steered_party": "off"}
}

test_no_other_setting_loosens if {
	every setting in ["allow", "OFF", "ASK", "", true, null, ["ask"]] {
		steered_party.verdict.verdict == "deny" with input as armed with data.settings as {"steered_party": setting}
	}
	steered_party.verdict.verdict == "deny" with input as armed with data.settings as {}
}

test_lifted_without_untrusted_content if {
	doc := object.union(armed, {"forecast": {"untrusted": []}})
	steered_party.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_lifted_by_parties_that_somebody_named if {
	doc := object.union(armed, {"call": {"vouched": {"parties": true}}})
	steered_party.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_only_the_exact_untrusted_is_a_proof if {
	every value in [null, "", {}, false, 0, [[]]] {
		doc := object.union(armed, {"forecast": {"untrusted": value}})
		steered_party.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_only_the_exact_parties_is_a_proof if {
	every value in ["true", 1, "yes", null, [], {}] {
		doc := object.union(armed, {"call": {"vouched": {"parties": value}}})
		steered_party.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_what_is_missing_proves_nothing if {
	every path in ["forecast/untrusted", "call/vouched/parties", "call/vouched", "call", "forecast"] {
		steered_party.verdict.verdict == "deny" with input as json.remove(armed, [path]) with data.settings as {}
	}
	steered_party.verdict.verdict == "deny" with input as {} with data.settings as {}
}
