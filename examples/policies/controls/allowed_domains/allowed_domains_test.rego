package controls.allowed_domains_test

import data.controls.allowed_domains

settings := {"controls": {"allowed_domains": ["example.com"]}}

to(value) := {"kind": "email", "value": value}

mail(destinations) := {"tool": {"name": "send_email", "egress": "chosen"}, "call": {"destinations": destinations}}

test_a_listed_domain if {
	allowed_domains.verdict.verdict == "allow" with input as mail([to("bob@example.com")]) with data.settings as settings
}

test_another_domain if {
	allowed_domains.verdict.verdict == "ask" with input as mail([to("bob@evil.example")]) with data.settings as settings
}

test_one_of_two if {
	both := [to("bob@example.com"), to("bob@evil.example")]
	allowed_domains.verdict.verdict == "ask" with input as mail(both) with data.settings as settings
}

test_a_domain_that_only_ends_alike if {
	allowed_domains.verdict.verdict == "ask" with input as mail([to("bob@notexample.com")]) with data.settings as settings
}

test_no_destination if {
	allowed_domains.verdict.verdict == "ask" with input as mail([]) with data.settings as settings
}

test_another_kind if {
	allowed_domains.verdict.verdict == "ask" with input as mail([{"kind": "unknown", "value": "bob@example.com"}])
		with data.settings as settings
}

test_a_value_that_is_no_text if {
	allowed_domains.verdict.verdict == "ask" with input as mail([{"kind": "email", "value": 7}])
		with data.settings as settings
}

test_text_first_and_then_none if {
	both := [to("bob@example.com"), {"kind": "email", "value": 7}]
	allowed_domains.verdict.verdict == "ask" with input as mail(both) with data.settings as settings
}

test_nothing_sent if {
	allowed_domains.verdict.verdict == "allow" with input as {"tool": {"name": "read_file", "egress": "none"}}
		with data.settings as settings
}

test_pages_are_not_mail if {
	allowed_domains.verdict.verdict == "allow" with input as {"tool": {"name": "fetch", "egress": "chosen"}}
		with data.settings as settings
}
