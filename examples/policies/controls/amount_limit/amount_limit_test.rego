package controls.amount_limit_test

import data.controls.amount_limit

settings := {"controls": {"amount_limit": 500}}

pay(amount) := {"tool": {"name": "pay", "egress": "chosen"}, "call": {"arguments": {"amount": amount}}}

test_up_to_the_limit if {
	amount_limit.verdict.verdict == "allow" with input as pay(500) with data.settings as settings
}

test_above_the_limit if {
	amount_limit.verdict.verdict == "ask" with input as pay(500.01) with data.settings as settings
}

test_nothing if {
	amount_limit.verdict.verdict == "ask" with input as pay(0) with data.settings as settings
}

test_less_than_nothing if {
	amount_limit.verdict.verdict == "ask" with input as pay(-20) with data.settings as settings
}

test_an_amount_as_text if {
	amount_limit.verdict.verdict == "ask" with input as pay("20") with data.settings as settings
}

test_an_amount_as_null if {
	amount_limit.verdict.verdict == "ask" with input as pay(null) with data.settings as settings
}

test_an_amount_as_list if {
	amount_limit.verdict.verdict == "ask" with input as pay([20]) with data.settings as settings
}

test_a_limit_that_is_no_number if {
	amount_limit.verdict.verdict == "ask" with input as pay(20) with data.settings as {"controls": {"amount_limit": "500"}}
}

test_no_amount if {
	amount_limit.verdict.verdict == "ask" with input as {"tool": {"name": "pay", "egress": "chosen"}, "call": {"arguments": {}}}
		with data.settings as settings
}

test_mail_costs_nothing if {
	amount_limit.verdict.verdict == "allow" with input as {"tool": {"name": "send_email", "egress": "chosen"}}
		with data.settings as settings
}

test_nothing_sent if {
	amount_limit.verdict.verdict == "allow" with input as {"tool": {"name": "other", "egress": "none"}}
		with data.settings as settings
}
