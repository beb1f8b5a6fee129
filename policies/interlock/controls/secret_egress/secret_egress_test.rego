package interlock.controls.secret_egress_test

import data.interlock.controls.secret_egress

# The trap: The receiver may be the person's own spouse: a grounded destination lifts nothing here.

armed := {
	"forecast": {"untrusted": ["web"], "private": ["credentials"], "egress": [], "credentials": true},
	"tool": {"egress": "chosen", "opens": []},
	"call": {"grounded": true},
}

test_asks_when_the_operator_says_so if {
	secret_egress.verdict == {"verdict": "ask", "remedies": ["new_conversation"]} with input as armed
		with data.settings as {"secret_egress": "ask"}
}

test_denies_when_the_operator_says_so if {
	secret_egress.verdict == {"verdict": "deny", "remedies": ["new_conversation"]} with input as armed
		with data.settings as {"secret_egress": "deny"}
}

test_no_other_setting_loosens if {
	every setting in ["allow", "off", "ASK", "", true, null, ["ask"]] {
		secret_egress.verdict.verdict == "deny" with input as armed with data.settings as {"secret_egress": setting}
	}
	secret_egress.verdict.verdict == "deny" with input as armed with data.settings as {}
}

test_lifted_when_nothing_leaves if {
	doc := object.union(armed, {"tool": {"egress": "none"}})
	secret_egress.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_lifted_without_untrusted_content if {
	doc := object.union(armed, {"forecast": {"untrusted": []}})
	secret_egress.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_lifted_without_credentials if {
	doc := object.union(armed, {"forecast": {"credentials": false}})
	secret_egress.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_only_the_exact_untrusted_is_a_proof if {
	every value in [null, "", {}, false, 0, [[]]] {
		doc := object.union(armed, {"forecast": {"untrusted": value}})
		secret_egress.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_only_the_exact_credentials_is_a_proof if {
	every value in ["false", 0, null, "", [], {}] {
		doc := object.union(armed, {"forecast": {"credentials": value}})
		secret_egress.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_no_word_for_the_receiver_lifts_it if {
	every egress in ["blind", "chosen"] {
		doc := object.union(armed, {"tool": {"egress": egress}})
		secret_egress.verdict.verdict == "deny" with input as doc with data.settings as {"secret_egress": "deny"}
	}
}

test_a_channel_is_a_send if {
	doc := object.union(armed, {"tool": {"egress": "none", "opens": ["egress:channel"]}})
	secret_egress.verdict.verdict == "deny" with input as doc with data.settings as {"secret_egress": "deny"}
}

test_what_is_missing_proves_nothing if {
	every path in ["forecast/untrusted", "forecast/credentials", "forecast"] {
		secret_egress.verdict.verdict == "deny" with input as json.remove(armed, [path]) with data.settings as {}
	}
	secret_egress.verdict.verdict == "deny" with input as {} with data.settings as {}
}
