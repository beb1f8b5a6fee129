package controls.two_people_test

import data.controls.two_people

settings := {"controls": {"payees": ["billing@supplier.example"]}}

pay(destinations) := {"tool": {"name": "pay", "egress": "chosen"}, "call": {"destinations": destinations}}

payee(value, origin) := {"value": value, "origin": origin}

known := payee("billing@supplier.example", "user")

test_both_vouch if {
	two_people.verdict.verdict == "allow" with input as pay([known]) with data.settings as settings
}

test_only_the_person if {
	two_people.verdict.verdict == "ask" with input as pay([payee("eve@evil.example", "user")]) with data.settings as settings
}

test_only_the_operator if {
	two_people.verdict.verdict == "ask" with input as pay([payee("billing@supplier.example", "unseen")])
		with data.settings as settings
}

test_one_of_two_payees if {
	both := [known, payee("eve@evil.example", "user")]
	two_people.verdict.verdict == "ask" with input as pay(both) with data.settings as settings
}

test_the_second_was_not_typed if {
	both := [known, payee("billing@supplier.example", "operator")]
	two_people.verdict.verdict == "ask" with input as pay(both) with data.settings as settings
}

test_nobody if {
	two_people.verdict.verdict == "ask" with input as pay([]) with data.settings as settings
}

test_mail_pays_nobody if {
	two_people.verdict.verdict == "allow" with input as {"tool": {"name": "send_email", "egress": "chosen"}}
		with data.settings as settings
}

test_nothing_sent if {
	two_people.verdict.verdict == "allow" with input as {"tool": {"name": "other", "egress": "none"}}
		with data.settings as settings
}
