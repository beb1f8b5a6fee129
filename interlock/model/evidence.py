"""Words that say something about a tool: the tables behind :mod:`interlock.model.proposals`.

A word here may add a leg freely. For a leg to be left out, a word has to be on a list that is short and dull on
purpose: what is on no list counts as the worst.
"""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


READS: Final = _words(
    "get list read show view describe status diff log count info open check explain history retrieve download directory"
    " tree stat head tail whoami find search query wait"
)
"""Verbs of looking. Only a tool whose first verb is one of these can go without egress by what its name says."""

ADDS: Final = _words("create add append insert new register make generate import")
CHANGES: Final = _words("write edit update set put patch rename move modify change replace save apply mark archive")
DESTROYS: Final = _words(
    "delete remove drop destroy purge clear kill terminate stop reset cancel uninstall revoke merge rollback truncate"
)
RUNS: Final = _words(
    "run execute exec eval evaluate shell command script process deploy start invoke call trigger install build launch"
    " spawn sudo code"
)
"""Verbs and nouns of running something, which may do whatever its process may."""

SENDS: Final = _words(
    "send post publish share reply comment forward email mail message notify upload push submit invite tweet broadcast"
    " navigate browse click type fill press select hover drag drop fetch crawl scrape map extract request ask chat"
    " react reaction fork commit checkout review assign sync export print fax pay transfer refund feedback"
)
"""Verbs of sending. A page that is acted on can send what it holds, and hooks of a repository run when it is used."""

OUTSIDE: Final = _words(
    "web internet online url urls http https website websites webpage remote webhook webhooks docs"
    " documentation news browser hostname library libraries research papers crawler spider"
)
"""Words of asking a stranger: with one of these, looking is asking, and what is asked leaves."""

TOLD: Final = _words(
    "send sends sending upload uploads publish publishes forward forwards transmit transmits share shares"
    " submit submits notify notifies broadcast broadcasts exfiltrate post posts tweet tweets"
)
"""Verbs of sending that count in a description too: a tool that says so does so."""

RENDERS: Final = _words("pdf html render rendered preview prompt prompts completion inference embeddings llm")
"""What is rendered loads what it names, and a prompt goes to a model."""

STRONG_RECEIVERS: Final = _words(
    "cc bcc recipient recipients receiver email emails mail url urls uri link endpoint webhook callback host hostname"
    " region proxy ip address addresses phone iban payee forward attendees invitees"
)
"""Names of arguments that name a receiver even where a tool only looks: they say where the question goes."""

ARBITRARY: Final = _words("command cmd script code function shell expression sql args cypher graphql jql template")
"""Names of arguments that are programs: what they do is not known before they run."""

LOCAL: Final = _words("path paths file files filename folder directory dir repo_path filepath")
"""Names of arguments that are places on this machine."""

PUBLIC: Final = _words(
    "web internet news weather wikipedia documentation docs timezone timezones arxiv papers math sum calculator"
)
"""What anybody may read. A tool that looks for it, takes no address and speaks of nobody's things brings no secrets."""

OWNED: Final = _words(
    "account accounts user users customer customers team teams project projects organization issue issues page mail"
    " mails message messages inbox calendar event events attendee file files folder document documents database table"
    " rows record records note notes contact contacts order orders invoice payment repository repositories cluster pod"
    " pods node container log logs session sessions private internal local memory chat channel workspace"
)
"""Somebody's things."""

SECRETS: Final = _words(
    "secret secrets credential credentials password passwords token tokens env environment environ apikey keys cookie"
    " cookies vault dsn dsns"
)
PAYLOAD: Final = _words(
    "body text message content title subject summary description comment note caption html markdown"
)
"""Names of arguments that are payload in every tool: they name nobody."""
