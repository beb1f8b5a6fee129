"""Learning from records: what the operator could vouch for or declare, so that honest work is refused less often.

Nothing is applied. A proposal is made from calls that were refused again and again, or that a person approved; it is
tried on the same records and on stories of attacks, and dropped when any attack, or any call whose receiver a
stranger's text named, would be judged more leniently.

A journal holds digests and no values, in shadow mode too: from one alone only names of tools and numbers of refusals
can be learned. Where the messages are kept (a session, a store, a transcript), receivers can be.
"""

from interlock.learning.proposals import Proposal
from interlock.learning.records import Record, read_record, stored_record
from interlock.learning.trials import Dropped, Learned, learn

__all__ = ["Dropped", "Learned", "Proposal", "Record", "learn", "read_record", "stored_record"]
