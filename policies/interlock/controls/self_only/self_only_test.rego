package interlock.controls.self_only_test

import data.interlock.controls.self_only

# The trap: Nothing leaves and nothing is lost, and still the person will do what their own calendar tells them.

armed := {
	"forecast": {"untrusted": ["web"], "private": [], "egress": []},
	"tool": {"audience": "self"},
	"call": {"vouched": {"parties": false, "links": false}},
}

test_asks_when_the_operator_says_so if {
	self_only.verdict == {"verdict": "ask", "remedies": ["name_target"]} with input as armed
		with data.settings as {"self_only": "ask"}
}

test_denies_when_the_operator_says_so if {
	self_only.verdict == {"verdict": "deny", "remedies": ["name_target"]} with input as armed
		with data.settings as {"self_only": "deny"}
}

test_lifted_when_the_operator_turns_it_off if {
	self_only.verdict == {"verdict": "allow"} with input as armed with data.settings as {"self_only": "off"}
}

test_no_other_setting_loosens if {
	every setting in ["allow", "OFF", "ASK", "", true, null, ["ask"]] {
		self_only.verdict.verdict == "deny" with input as armed with data.settings as {"self_only": setting}
	}
	self_only.verdict.verdict == "deny" with input as armed with data.settings as {}
}

test_lifted_for_an_open_audience if {
	doc := object.union(armed, {"tool": {"audience": ""}})
	self_only.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_lifted_for_a_closed_audience if {
	doc := object.union(armed, {"tool": {"audience": "closed"}})
	self_only.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_lifted_without_untrusted_content if {
	doc := object.union(armed, {"forecast": {"untrusted": []}})
	self_only.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_lifted_when_all_of_it_is_vouched_for if {
	doc := object.union(armed, {"call": {"vouched": {"parties": true, "links": true}}})
	self_only.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_only_the_exact_audience_is_a_proof if {
	every value in ["None", " ", null, false, 0, [], {}] {
		doc := object.union(armed, {"tool": {"audience": value}})
		self_only.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_only_the_exact_untrusted_is_a_proof if {
	every value in [null, "", {}, false, 0, [[]]] {
		doc := object.union(armed, {"forecast": {"untrusted": value}})
		self_only.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_one_of_both_is_not_enough if {
	every name in ["parties", "links"] {
		doc := object.union(armed, {"call": {"vouched": {name: true}}})
		self_only.verdict.verdict == "ask" with input as doc with data.settings as {"self_only": "ask"}
	}
}

test_what_is_missing_proves_nothing if {
	every path in ["tool/audience", "forecast/untrusted", "call/vouched", "call", "forecast", "tool"] {
		self_only.verdict.verdict == "deny" with input as json.remove(armed, [path]) with data.settings as {}
	}
	self_only.verdict.verdict == "deny" with input as {} with data.settings as {}
}
