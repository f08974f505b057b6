"""The constants of the adaptive tuner, each with its reason. Where they come from: docs/tuner.md.

What round trips show of queues is known to streams as well: QUEUE and SHOWS of mpx/engine/round_trips.py.
"""

from mpx.engine.round_trips import SHOWS, Span

# Times.
UNKNOWN_RTT_S = 0.05  # until the RTT is known
RAMP = Span(0.3, 12.0)  # new streams are judged after this ...
QUICK = SHOWS  # ... by what they carried in the last of it
SLOW = Span(2.0, 20.0)  # all other comparisons take means over this; losses count after it
REST = Span(3.0, 40.0)  # before a trial; a trial of fewer streams lasts no longer; no step when less is left
STALL = Span(0.3, 3.0)  # a silence of that length is a pause of who reads or writes, not of the path
PATIENCE = Span(3.5, 20.0)  # two lost SYNs, then streams that are not open are given up
STEP_SHOWS_S = 0.5  # a step should show in so long: where a ramp takes longer, the first step is larger
WAIT_S, RAREST_S = 5.0, 60.0  # until what was in vain is tried again: at first, and at most
LONGEST_S = 120.0  # what was learnt longer ago no longer counts: the path may carry more since

# Numbers of streams, and factors of them.
MANY = 16  # twice as many make a queue overflow where windows limit them
STEP = 2.0  # while more streams carry more
UP = 1.4  # of trials, up and down, the least that shows; and of the time until the next after one in vain
NEARLY_ALL = 0.85  # of the streams asked for are as good as all; a bend beyond that share of them is no news

# Goodput: powers of the factor of the streams, and shares.
GAIN = 0.5  # by that power more streams have gained ...
MUCH = 0.75  # ... and by that the bend is farther up
AS_MUCH = 0.97  # that share is as much
SHORT = 0.93  # less than that share of what the path carries is too little
SPARE = 1 / SHORT  # so many more streams than the bend make up for it, as real curves are round there
LOST = 0.8  # less than that share ends a trial of fewer streams at once
FELL = 0.5  # less than that share soon after a step up ends it
COST = 0.01  # the share that trials of fewer streams may cost

# Queues, windows, losses.
LONG_QUEUE = 0.1  # of the RTT: routers that keep their queues short leave less
HALF_THE_TIME = 0.5  # the path is full, or windows are the limit, if they are for so long
LOSSY = 0.1  # no more streams while more than that share is sent again
LOSSES = 20  # so many are needed for an answer
ALIKE = 2.0  # shares of losses that differ by less are alike
POLICED = 1.0  # losses grow by more than that power of the streams where a path is full (1.33 of CUBIC)
