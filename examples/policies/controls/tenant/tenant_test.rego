package controls.tenant_test

import data.controls.tenant

settings := {"controls": {"tenants": {"acme": ["acme.example"], "other": ["other.example"]}}}

mail(namespace, destinations) := {
	"conversation": {"namespace": namespace},
	"tool": {"name": "send_email", "egress": "chosen"},
	"call": {"destinations": destinations},
}

to(value) := {"kind": "email", "value": value}

test_own_domain if {
	tenant.verdict.verdict == "allow" with input as mail("acme", [to("bob@acme.example")]) with data.settings as settings
}

test_domain_of_another_tenant if {
	tenant.verdict.verdict == "deny" with input as mail("acme", [to("bob@other.example")]) with data.settings as settings
}

test_an_unknown_tenant if {
	tenant.verdict.verdict == "deny" with input as mail("nobody", [to("bob@acme.example")]) with data.settings as settings
}

test_one_of_two if {
	both := [to("bob@acme.example"), to("bob@other.example")]
	tenant.verdict.verdict == "deny" with input as mail("acme", both) with data.settings as settings
}

test_no_destination if {
	tenant.verdict.verdict == "deny" with input as mail("acme", []) with data.settings as settings
}

test_another_kind if {
	tenant.verdict.verdict == "deny" with input as mail("acme", [{"kind": "unknown", "value": "bob@acme.example"}])
		with data.settings as settings
}

test_a_value_that_is_no_text if {
	tenant.verdict.verdict == "deny" with input as mail("acme", [{"kind": "email", "value": 7}])
		with data.settings as settings
}

test_text_first_and_then_none if {
	both := [to("bob@acme.example"), {"kind": "email", "value": 7}]
	tenant.verdict.verdict == "deny" with input as mail("acme", both) with data.settings as settings
}

test_nothing_sent if {
	tenant.verdict.verdict == "allow" with input as {"tool": {"name": "read_file", "egress": "none"}}
		with data.settings as settings
}

test_pages_belong_to_nobody if {
	tenant.verdict.verdict == "allow" with input as {"tool": {"name": "fetch", "egress": "chosen"}}
		with data.settings as settings
}
