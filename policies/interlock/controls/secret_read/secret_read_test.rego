package interlock.controls.secret_read_test

import data.interlock.controls.secret_read

# The trap: Reading sends nothing. But what a model that listens to a stranger has read, it can put anywhere.

armed := {
	"forecast": {"untrusted": ["web"], "private": ["credentials"], "egress": []},
	"tool": {"egress": "none"},
	"call": {"grounded": true, "credentials": true},
}

test_asks_when_the_operator_says_so if {
	secret_read.verdict == {"verdict": "ask", "remedies": ["new_conversation"]} with input as armed
		with data.settings as {"secret_read": "ask"}
}

test_denies_when_the_operator_says_so if {
	secret_read.verdict == {"verdict": "deny", "remedies": ["new_conversation"]} with input as armed
		with data.settings as {"secret_read": "deny"}
}

test_lifted_when_the_operator_turns_it_off if {
	secret_read.verdict == {"verdict": "allow"} with input as armed with data.settings as {"secret_read": "off"}
}

test_no_other_setting_loosens if {
	every setting in ["allow", "OFF", "ASK", "", true, null, ["ask"]] {
		secret_read.verdict.verdict == "deny" with input as armed with data.settings as {"secret_read": setting}
	}
	secret_read.verdict.verdict == "deny" with input as armed with data.settings as {}
}

test_lifted_without_untrusted_content if {
	doc := object.union(armed, {"forecast": {"untrusted": []}})
	secret_read.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_lifted_by_a_call_that_reads_none if {
	doc := object.union(armed, {"call": {"credentials": false}})
	secret_read.verdict == {"verdict": "allow"} with input as doc with data.settings as {}
}

test_only_the_exact_untrusted_is_a_proof if {
	every value in [null, "", {}, false, 0, [[]]] {
		doc := object.union(armed, {"forecast": {"untrusted": value}})
		secret_read.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_only_the_exact_credentials_is_a_proof if {
	every value in ["false", 0, null, "", [], {}] {
		doc := object.union(armed, {"call": {"credentials": value}})
		secret_read.verdict.verdict == "deny" with input as doc with data.settings as {}
	}
}

test_what_is_missing_proves_nothing if {
	every path in ["forecast/untrusted", "call/credentials", "call", "forecast"] {
		secret_read.verdict.verdict == "deny" with input as json.remove(armed, [path]) with data.settings as {}
	}
	secret_read.verdict.verdict == "deny" with input as {} with data.settings as {}
}
