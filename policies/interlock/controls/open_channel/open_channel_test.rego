package interlock.controls.open_channel_test

import data.interlock.controls.open_channel

# The trap: the order in which the three come together makes no difference. With a port open since yesterday it is the
# harmless-looking read of a file that puts the data where a stranger can fetch it.
armed := {
	"forecast": {"untrusted": ["web"], "private": ["files"], "egress": ["channel"]},
	"tool": {"egress": "none", "opens": [], "effect": "none"},
	"call": {"grounded": false, "labels": {"untrusted": [], "private": ["files"], "egress": []}},
}

quiet := object.union(armed, {"call": {"labels": {"private": []}}})

test_denies_a_read_beside_an_open_channel if {
	open_channel.verdict == {"verdict": "deny", "remedies": ["new_conversation"]} with input as armed
		with data.settings as {"open_channel": "deny"}
}

test_denies_opening_a_channel_after_a_read if {
	doc := object.union(quiet, {"tool": {"opens": ["egress:channel"]}})
	open_channel.verdict.verdict == "deny" with input as doc with data.settings as {"open_channel": "deny"}
}

test_denies_a_write_that_the_channel_may_show if {
	every effect in ["write", "destroy", "control"] {
		open_channel.verdict.verdict == "deny" with input as object.union(quiet, {"tool": {"effect": effect}})
			with data.settings as {"open_channel": "deny"}
	}
}

test_asks_when_the_operator_says_so if {
	open_channel.verdict == {"verdict": "ask", "remedies": ["new_conversation"]} with input as armed
		with data.settings as {"open_channel": "ask"}
}

test_no_other_setting_loosens if {
	every setting in ["allow", "off", "Ask", "", true, null] {
		open_channel.verdict.verdict == "deny" with input as armed with data.settings as {"open_channel": setting}
	}
	open_channel.verdict.verdict == "deny" with input as armed with data.settings as {}
}

test_lifted_without_a_channel if {
	open_channel.verdict == {"verdict": "allow"} with input as object.union(armed, {"forecast": {"egress": []}})
}

test_lifted_without_untrusted_content if {
	open_channel.verdict == {"verdict": "allow"} with input as object.union(armed, {"forecast": {"untrusted": []}})
}

test_lifted_without_private_data if {
	open_channel.verdict == {"verdict": "allow"} with input as object.union(armed, {"forecast": {"private": []}})
}

test_lifted_for_a_call_that_feeds_nothing if {
	open_channel.verdict == {"verdict": "allow"} with input as quiet
}

test_feeding_nothing_needs_all_three_parts if {
	every path in ["call/labels/private", "tool/opens", "tool/effect", "call/labels", "call", "tool"] {
		open_channel.verdict.verdict == "deny" with input as json.remove(quiet, [path])
	}
}

test_a_grounded_call_does_not_close_the_channel if {
	open_channel.verdict.verdict == "deny" with input as object.union(armed, {"call": {"grounded": true}})
}

test_what_is_missing_proves_nothing if {
	every path in ["forecast/egress", "forecast/untrusted", "forecast/private", "forecast"] {
		open_channel.verdict.verdict == "deny" with input as json.remove(armed, [path])
	}
	open_channel.verdict.verdict == "deny" with input as {}
}
