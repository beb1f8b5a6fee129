package interlock.controls.credential_egress_test

import data.interlock.controls.credential_egress

# The trap: the person may have typed the attacker's own request. No stranger's text is needed, and the destination is
# one that the person named, so neither of the two can be what lifts this objection.
armed := {
	"forecast": {"untrusted": [], "private": ["credentials"], "egress": [], "credentials": true},
	"tool": {"egress": "chosen", "opens": []},
	"call": {"grounded": true},
}

test_asks_before_any_send if {
	credential_egress.verdict == {"verdict": "ask", "remedies": ["new_conversation"]} with input as armed
}

test_lifted_when_nothing_leaves if {
	credential_egress.verdict == {"verdict": "allow"} with input as object.union(armed, {"tool": {"egress": "none"}})
}

test_lifted_without_credentials if {
	doc := object.union(armed, {"forecast": {"credentials": false}})
	credential_egress.verdict == {"verdict": "allow"} with input as doc
}

test_a_fixed_receiver_is_asked_too if {
	credential_egress.verdict.verdict == "ask" with input as object.union(armed, {"tool": {"egress": "blind"}})
}

test_a_channel_is_a_send_that_comes_later if {
	doc := object.union(armed, {"tool": {"egress": "none", "opens": ["egress:channel"]}})
	credential_egress.verdict.verdict == "ask" with input as doc
}

test_no_setting_switches_it_off if {
	every settings in [{"credential_egress": "off"}, {"trifecta": "ask", "leak_guard": "off"}, {}] {
		credential_egress.verdict.verdict == "ask" with input as armed with data.settings as settings
	}
}

# The list alone is never asked: "credentials is not in it" would be a proof by absence.
test_the_list_is_no_proof if {
	every private in [[], ["files"]] {
		credential_egress.verdict.verdict == "ask" with input as object.union(armed, {"forecast": {"private": private}})
	}
}

test_only_false_is_false if {
	every value in ["false", 0, null, "", [], {}] {
		doc := object.union(armed, {"forecast": {"credentials": value}})
		credential_egress.verdict.verdict == "ask" with input as doc
	}
}

test_what_is_missing_proves_nothing if {
	quiet := object.union(armed, {"tool": {"egress": "none"}})
	every path in ["tool/egress", "tool/opens", "tool"] {
		credential_egress.verdict.verdict == "ask" with input as json.remove(quiet, [path])
	}
	credential_egress.verdict.verdict == "ask" with input as json.remove(armed, ["forecast/credentials"])
	credential_egress.verdict.verdict == "ask" with input as {}
}
