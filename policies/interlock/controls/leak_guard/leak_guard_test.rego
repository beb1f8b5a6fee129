package interlock.controls.leak_guard_test

import data.interlock.controls.leak_guard

# The trap: what lifts the trifecta does not lift this one. A receiver whom the person named and a receiver that the
# operator fixed are still receivers.
armed := {
	"forecast": {"untrusted": ["web"], "private": ["files"], "egress": []},
	"tool": {"egress": "chosen", "opens": []},
	"call": {"grounded": false},
}

test_denies_any_send_after_private_data if {
	leak_guard.verdict == {"verdict": "deny", "remedies": ["new_conversation"]} with input as armed
		with data.settings as {"leak_guard": "deny"}
}

test_asks_when_the_operator_says_so if {
	leak_guard.verdict == {"verdict": "ask", "remedies": ["new_conversation"]} with input as armed
		with data.settings as {"leak_guard": "ask"}
}

test_lifted_when_it_is_off if {
	leak_guard.verdict == {"verdict": "allow"} with input as armed with data.settings as {"leak_guard": "off"}
}

test_only_off_is_off if {
	every setting in ["OFF", "no", "allow", "", false, null, 0] {
		leak_guard.verdict.verdict == "deny" with input as armed with data.settings as {"leak_guard": setting}
	}
	leak_guard.verdict.verdict == "deny" with input as armed with data.settings as {}
}

test_lifted_when_nothing_leaves if {
	leak_guard.verdict == {"verdict": "allow"} with input as object.union(armed, {"tool": {"egress": "none"}})
		with data.settings as {"leak_guard": "deny"}
}

test_lifted_without_private_data if {
	leak_guard.verdict == {"verdict": "allow"} with input as object.union(armed, {"forecast": {"private": []}})
		with data.settings as {"leak_guard": "deny"}
}

test_a_channel_is_a_send_that_comes_later if {
	doc := object.union(armed, {"tool": {"egress": "none", "opens": ["egress:channel"]}})
	leak_guard.verdict.verdict == "deny" with input as doc with data.settings as {"leak_guard": "deny"}
}

test_an_open_channel_list_alone_is_no_proof if {
	leak_guard.verdict.verdict == "deny" with input as object.union(armed, {"tool": {"opens": []}})
		with data.settings as {"leak_guard": "deny"}
}

test_neither_grounded_nor_blind_nor_trusted_lifts if {
	every change in [{"call": {"grounded": true}}, {"tool": {"egress": "blind"}}, {"forecast": {"untrusted": []}}] {
		leak_guard.verdict.verdict == "deny" with input as object.union(armed, change)
			with data.settings as {"leak_guard": "deny"}
	}
}

test_what_is_missing_proves_nothing if {
	every path in ["tool/egress", "tool/opens", "forecast/private", "tool", "forecast"] {
		leak_guard.verdict.verdict == "deny" with input as json.remove(armed, [path])
			with data.settings as {"leak_guard": "deny"}
	}
	leak_guard.verdict.verdict == "deny" with input as {} with data.settings as {"leak_guard": "deny"}
}

test_quiet_needs_both_halves if {
	every path in ["tool/egress", "tool/opens"] {
		quiet := object.union(armed, {"tool": {"egress": "none", "opens": []}})
		leak_guard.verdict.verdict == "deny" with input as json.remove(quiet, [path])
			with data.settings as {"leak_guard": "deny"}
	}
}
