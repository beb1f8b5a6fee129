package controls.business_hours_test

import data.controls.business_hours

settings := {"controls": {"last_hour": 18}}

sending(now) := {"now": now, "tool": {"egress": "chosen"}, "forecast": {"private": ["files"]}}

test_sent_at_noon if {
	business_hours.verdict.verdict == "allow" with input as sending("2026-11-30T12:00:00Z") with data.settings as settings
}

test_sent_from_eight_on if {
	business_hours.verdict.verdict == "allow" with input as sending("2026-11-30T08:00:00Z") with data.settings as settings
}

test_asked_before_eight if {
	business_hours.verdict.verdict == "ask" with input as sending("2026-11-30T07:59:59Z") with data.settings as settings
}

test_asked_from_the_last_hour_on if {
	business_hours.verdict.verdict == "ask" with input as sending("2026-11-30T18:00:00Z") with data.settings as settings
}

test_asked_without_the_setting if {
	business_hours.verdict.verdict == "ask" with input as sending("2026-11-30T12:00:00Z") with data.settings as {"controls": {}}
}

test_asked_when_the_setting_is_no_number if {
	business_hours.verdict.verdict == "ask" with input as sending("2026-11-30T12:00:00Z") with data.settings as {"controls": {"last_hour": "18"}}
}

test_asked_when_the_time_is_no_text if {
	business_hours.verdict.verdict == "ask" with input as sending(7) with data.settings as settings
}

test_nothing_private if {
	business_hours.verdict.verdict == "allow" with input as object.union(
		sending("2026-11-30T23:00:00Z"),
		{"forecast": {"private": []}},
	)
		with data.settings as settings
}

test_nothing_sent if {
	business_hours.verdict.verdict == "allow" with input as object.union(
		sending("2026-11-30T23:00:00Z"),
		{"tool": {"egress": "none"}},
	)
		with data.settings as settings
}
