package interlock.controls.unknown_tool_test

import data.interlock.controls.unknown_tool

# The trap: in a clean conversation every other control has its proof. A tool that nobody declared must still not run
# unasked, since it may bring all three legs by itself (T7).
armed := {
	"forecast": {"untrusted": [], "private": [], "egress": []},
	"tool": {"known": false, "egress": "none", "effect": "none"},
	"call": {"grounded": true, "destinations": [], "unclassified": []},
}

test_asks_even_in_a_clean_conversation if {
	unknown_tool.verdict == {"verdict": "ask", "remedies": ["declare_tool"]} with input as armed
}

test_lifted_by_a_declaration if {
	unknown_tool.verdict == {"verdict": "allow"} with input as object.union(armed, {"tool": {"known": true}})
}

test_only_true_is_known if {
	every value in ["true", 1, "yes", null, [true], {}] {
		unknown_tool.verdict.verdict == "ask" with input as object.union(armed, {"tool": {"known": value}})
	}
}

test_no_setting_switches_it_off if {
	every settings in [{"unknown_tool": "off"}, {"trifecta": "ask", "leak_guard": "off"}, {}] {
		unknown_tool.verdict.verdict == "ask" with input as armed with data.settings as settings
	}
}

test_what_is_missing_proves_nothing if {
	every path in ["tool/known", "tool"] {
		unknown_tool.verdict.verdict == "ask" with input as json.remove(armed, [path])
	}
	unknown_tool.verdict.verdict == "ask" with input as {}
}
