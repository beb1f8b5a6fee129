package interlock.controls.split_exfiltration_test

import data.interlock.controls.split_exfiltration

# The trap: Nothing untrusted has to be here. One call is small enough for anybody to wave it through; the ninth is
# not.

armed := {
	"forecast": {"untrusted": [], "private": ["files"], "egress": []},
	"tool": {"egress": "chosen"},
	"call": {"grounded": false, "drip": true},
}

test_asks_when_the_operator_says_so if {
	split_exfiltration.verdict == {"verdict": "ask", "remedies": ["name_destination", "new_conversation"]} with input as armed
		with data.settings as {"split_exfiltration": "ask"}
}

test_denies_when_the_operator_says_so if {
	split_exfiltration.verdict == {"verdict": "deny", "remedies": ["name_destination", "new_conversation"]} with input as armed
		with data.settings as {"split_exfiltration": "deny"}
}

test_lifted_when_the_operator_turns_it_off if {
	split_exfiltration.verdict == {"verdict": "allow"} with input as armed with data.settings as {"split_exfiltration": "off"}
}

test_no_other_setting_loosens if {
	every setting in ["allow", "OFF", "ASK", "", true, null, ["ask"]] {
		split_exfiltration.verdict.verdict == "deny" with input as armed with data.settings as {"split_exfiltration": setting}
	}
	split_exfiltration.verdict.verdict == "deny" with input as armed with data.settings as {}
}

test_lifted_when_nothing_leaves if {
	doc := object.union(armed, {"tool": {"egress": "none"}})
	split_exfiltration.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_lifted_when_the_audience_is_closed if {
	doc := object.union(armed, {"tool": {"egress": "blind"}})
	split_exfiltration.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_lifted_without_private_data if {
	doc := object.union(armed, {"forecast": {"private": []}})
	split_exfiltration.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_lifted_by_a_grounded_destination if {
	doc := object.union(armed, {"call": {"grounded": true}})
	split_exfiltration.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_lifted_by_the_first_few if {
	doc := object.union(armed, {"call": {"drip": false}})
	split_exfiltration.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_only_the_exact_egress_is_a_proof if {
	every value in ["None", " ", null, false, 0, [], {}] {
		doc := object.union(armed, {"tool": {"egress": value}})
		split_exfiltration.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_only_the_exact_private_is_a_proof if {
	every value in [null, "", {}, false, 0, [[]]] {
		doc := object.union(armed, {"forecast": {"private": value}})
		split_exfiltration.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_only_the_exact_grounded_is_a_proof if {
	every value in ["true", 1, "yes", null, [], {}] {
		doc := object.union(armed, {"call": {"grounded": value}})
		split_exfiltration.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_only_the_exact_drip_is_a_proof if {
	every value in ["false", 0, null, "", [], {}] {
		doc := object.union(armed, {"call": {"drip": value}})
		split_exfiltration.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_what_is_missing_proves_nothing if {
	every path in ["tool/egress", "forecast/private", "call/grounded", "call/drip", "call", "forecast", "tool"] {
		split_exfiltration.verdict.verdict == "deny" with input as json.remove(armed, [path]) with data.settings as {}
	}
	split_exfiltration.verdict.verdict == "deny" with input as {} with data.settings as {}
}
