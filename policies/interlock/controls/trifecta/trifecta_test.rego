package interlock.controls.trifecta_test

import data.interlock.controls.trifecta

# The trap: the legs need not have met yet. A mail tool in the same turn as a file tool is decided on what that file
# tool will bring, so the forecast counts and the exposure does not.
armed := {
	"exposure": {"untrusted": ["web"], "private": [], "egress": []},
	"forecast": {"untrusted": ["web"], "private": ["files"], "egress": []},
	"tool": {"egress": "chosen"},
	"call": {"grounded": false},
}

remedies := ["name_destination", "new_conversation"]

test_denies_when_the_legs_meet if {
	trifecta.verdict == {"verdict": "deny", "remedies": remedies} with input as armed
		with data.settings as {"trifecta": "deny"}
}

test_asks_when_the_operator_says_so if {
	trifecta.verdict == {"verdict": "ask", "remedies": remedies} with input as armed
		with data.settings as {"trifecta": "ask"}
}

test_no_other_setting_loosens if {
	every setting in ["allow", "off", "ASK", "", true, null, ["ask"]] {
		trifecta.verdict.verdict == "deny" with input as armed with data.settings as {"trifecta": setting}
	}
}

test_a_lost_setting_is_the_strict_one if {
	trifecta.verdict.verdict == "deny" with input as armed with data.settings as {}
}

test_lifted_when_nothing_leaves if {
	trifecta.verdict == {"verdict": "allow"} with input as object.union(armed, {"tool": {"egress": "none"}})
}

test_lifted_when_the_audience_is_closed if {
	trifecta.verdict == {"verdict": "allow"} with input as object.union(armed, {"tool": {"egress": "blind"}})
}

test_lifted_without_untrusted_content if {
	trifecta.verdict == {"verdict": "allow"} with input as object.union(armed, {"forecast": {"untrusted": []}})
}

test_lifted_without_private_data if {
	trifecta.verdict == {"verdict": "allow"} with input as object.union(armed, {"forecast": {"private": []}})
}

test_lifted_by_a_grounded_destination if {
	trifecta.verdict == {"verdict": "allow"} with input as object.union(armed, {"call": {"grounded": true}})
}

test_a_clean_exposure_is_no_proof if {
	doc := object.union(armed, {"exposure": {"untrusted": [], "private": []}})
	trifecta.verdict.verdict == "deny" with input as doc
}

test_the_unknown_category_is_a_leg if {
	doc := object.union(armed, {"forecast": {"untrusted": ["unknown"], "private": ["unknown"]}})
	trifecta.verdict.verdict == "deny" with input as doc
}

test_only_true_is_grounded if {
	every value in ["true", 1, "yes", null, [], {}] {
		trifecta.verdict.verdict == "deny" with input as object.union(armed, {"call": {"grounded": value}})
	}
}

test_only_an_empty_list_is_an_absent_leg if {
	every value in [null, "", {}, false, 0, [[]]] {
		every leg in ["untrusted", "private"] {
			trifecta.verdict.verdict == "deny" with input as object.union(armed, {"forecast": {leg: value}})
		}
	}
}

test_what_is_missing_proves_nothing if {
	every path in ["tool/egress", "forecast/untrusted", "forecast/private", "call/grounded", "tool", "forecast", "call"] {
		trifecta.verdict.verdict == "deny" with input as json.remove(armed, [path])
	}
	trifecta.verdict.verdict == "deny" with input as {}
}
