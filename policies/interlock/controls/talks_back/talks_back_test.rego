package interlock.controls.talks_back_test

import data.interlock.controls.talks_back

# The trap: `every` is true of an empty list. A call without destinations must not pass as a call whose destinations
# are all silent.
armed := {
	"forecast": {"untrusted": ["web"], "private": ["files"], "egress": []},
	"tool": {"egress": "chosen"},
	"call": {
		"grounded": true,
		"destinations": [{"argument": "url", "origin": "user", "talks_back": true}],
	},
}

silent := {"argument": "to", "origin": "user", "talks_back": false}

loud := {"argument": "cc", "origin": "user", "talks_back": true}

test_asks_before_writing_to_a_page_that_was_read if {
	talks_back.verdict == {"verdict": "ask", "remedies": ["new_conversation"]} with input as armed
}

test_lifted_when_nothing_leaves if {
	talks_back.verdict == {"verdict": "allow"} with input as object.union(armed, {"tool": {"egress": "none"}})
}

test_lifted_when_the_audience_is_closed if {
	talks_back.verdict == {"verdict": "allow"} with input as object.union(armed, {"tool": {"egress": "blind"}})
}

test_lifted_without_private_data if {
	talks_back.verdict == {"verdict": "allow"} with input as object.union(armed, {"forecast": {"private": []}})
}

test_lifted_when_every_destination_is_silent if {
	every destinations in [[silent], [silent, silent]] {
		talks_back.verdict == {"verdict": "allow"} with input as object.union(
			armed,
			{"call": {"destinations": destinations}},
		)
	}
}

test_no_destination_is_no_proof if {
	talks_back.verdict.verdict == "ask" with input as object.union(armed, {"call": {"destinations": []}})
}

test_one_that_talks_back_is_enough if {
	every destinations in [[silent, loud], [loud, silent]] {
		talks_back.verdict.verdict == "ask" with input as object.union(armed, {"call": {"destinations": destinations}})
	}
}

test_a_typed_destination_is_no_proof if {
	doc := object.union(armed, {"forecast": {"untrusted": []}, "call": {"grounded": true}})
	talks_back.verdict.verdict == "ask" with input as doc
}

test_only_false_is_silent if {
	every value in ["false", 0, null, "", [], {}] {
		destination := object.union(silent, {"talks_back": value})
		talks_back.verdict.verdict == "ask" with input as object.union(
			armed,
			{"call": {"destinations": [silent, destination]}},
		)
	}
}

test_what_is_missing_proves_nothing if {
	every path in ["tool/egress", "forecast/private", "call/destinations", "tool", "forecast", "call"] {
		talks_back.verdict.verdict == "ask" with input as json.remove(armed, [path])
	}
	nameless := object.remove(silent, ["talks_back"])
	talks_back.verdict.verdict == "ask" with input as object.union(
		armed,
		{"call": {"destinations": [silent, nameless]}},
	)
	talks_back.verdict.verdict == "ask" with input as {}
}
