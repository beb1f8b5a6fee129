package interlock.controls.unclassified_arguments_test

import data.interlock.controls.unclassified_arguments

# The trap: the receiver that everybody looks at may be fine while another field (a header, a reply address, a
# callback) says where the copy goes.
armed := {
	"forecast": {"untrusted": ["web"], "private": [], "egress": []},
	"tool": {"egress": "chosen"},
	"call": {"grounded": true, "unclassified": ["headers"]},
}

test_asks_about_a_field_that_nobody_classified if {
	unclassified_arguments.verdict == {"verdict": "ask", "remedies": ["drop_argument"]} with input as armed
}

test_lifted_when_nothing_leaves if {
	unclassified_arguments.verdict == {"verdict": "allow"} with input as object.union(
		armed,
		{"tool": {"egress": "none"}},
	)
}

test_lifted_when_every_field_is_classified if {
	unclassified_arguments.verdict == {"verdict": "allow"} with input as object.union(
		armed,
		{"call": {"unclassified": []}},
	)
}

test_lifted_without_untrusted_content if {
	unclassified_arguments.verdict == {"verdict": "allow"} with input as object.union(
		armed,
		{"forecast": {"untrusted": []}},
	)
}

test_a_fixed_receiver_is_asked_too if {
	unclassified_arguments.verdict.verdict == "ask" with input as object.union(armed, {"tool": {"egress": "blind"}})
}

test_a_grounded_receiver_is_no_proof if {
	unclassified_arguments.verdict.verdict == "ask" with input as object.union(armed, {"call": {"grounded": true}})
}

test_no_private_data_is_no_proof if {
	unclassified_arguments.verdict.verdict == "ask" with input as object.union(armed, {"forecast": {"private": []}})
}

test_no_setting_switches_it_off if {
	every settings in [{"unclassified_arguments": "off"}, {"trifecta": "ask", "leak_guard": "off"}, {}] {
		unclassified_arguments.verdict.verdict == "ask" with input as armed with data.settings as settings
	}
}

test_only_an_empty_list_is_empty if {
	every value in [null, "", {}, false, 0] {
		doc := object.union(armed, {"call": {"unclassified": value}})
		unclassified_arguments.verdict.verdict == "ask" with input as doc
	}
}

test_what_is_missing_proves_nothing if {
	every path in ["tool/egress", "forecast/untrusted", "call/unclassified", "tool", "forecast", "call"] {
		unclassified_arguments.verdict.verdict == "ask" with input as json.remove(armed, [path])
	}
	unclassified_arguments.verdict.verdict == "ask" with input as {}
}
