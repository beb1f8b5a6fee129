package interlock.controls.steered_link_test

import data.interlock.controls.steered_link

# The trap: The receiver is a colleague whom the person named. The page that they are told to open is not.

armed := {
	"forecast": {"untrusted": ["web"], "private": [], "egress": []},
	"tool": {"egress": "chosen", "effect": "none"},
	"call": {"grounded": true, "vouched": {"links": false}},
}

test_asks_when_the_operator_says_so if {
	steered_link.verdict == {"verdict": "ask", "remedies": ["name_destination"]} with input as armed
		with data.settings as {"steered_link": "ask"}
}

test_denies_when_the_operator_says_so if {
	steered_link.verdict == {"verdict": "deny", "remedies": ["name_destination"]} with input as armed
		with data.settings as {"steered_link": "deny"}
}

test_lifted_when_the_operator_turns_it_off if {
	steered_link.verdict == {"verdict": "allow"} with input as armed with data.settings as {"steered_link": "off"}
}

test_no_other_setting_loosens if {
	every setting in ["allow", "OFF", "ASK", "", true, null, ["ask"]] {
		steered_link.verdict.verdict == "deny" with input as armed with data.settings as {"steered_link": setting}
	}
	steered_link.verdict.verdict == "deny" with input as armed with data.settings as {}
}

test_what_is_kept_is_read_later if {
	every effect in ["add", "write", "destroy", "", null] {
		doc := object.union(armed, {"tool": {"egress": "none", "effect": effect}})
		steered_link.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_lifted_when_nothing_leaves if {
	doc := object.union(armed, {"tool": {"egress": "none"}})
	steered_link.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_lifted_without_untrusted_content if {
	doc := object.union(armed, {"forecast": {"untrusted": []}})
	steered_link.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_lifted_by_links_that_somebody_vouches_for if {
	doc := object.union(armed, {"call": {"vouched": {"links": true}}})
	steered_link.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_only_the_exact_egress_is_a_proof if {
	every value in ["None", " ", null, false, 0, [], {}] {
		doc := object.union(armed, {"tool": {"egress": value}})
		steered_link.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_only_the_exact_untrusted_is_a_proof if {
	every value in [null, "", {}, false, 0, [[]]] {
		doc := object.union(armed, {"forecast": {"untrusted": value}})
		steered_link.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_only_the_exact_links_is_a_proof if {
	every value in ["true", 1, "yes", null, [], {}] {
		doc := object.union(armed, {"call": {"vouched": {"links": value}}})
		steered_link.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_a_closed_audience_is_no_proof if {
	steered_link.verdict.verdict == "ask" with input as object.union(armed, {"tool": {"egress": "blind"}})
		with data.settings as {"steered_link": "ask"}
}

test_what_is_missing_proves_nothing if {
	every path in ["tool/egress", "tool/effect", "forecast/untrusted", "call/vouched/links", "call/vouched", "call", "forecast", "tool"] {
		steered_link.verdict.verdict == "deny" with input as json.remove(armed, [path]) with data.settings as {}
	}
	steered_link.verdict.verdict == "deny" with input as {} with data.settings as {}
}
